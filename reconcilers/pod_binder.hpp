#pragma once
// The extender's bind: a node that kwatt holds slow or capped gets its full speed back first, if
// that is quickly done, and then the pod is bound in any case.
//
// The restore itself is the leader's, as every change of a machine is; any replica asks for it by
// the annotation kwatt.dev/restore on the Node (docs/adr/0006).
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "reconcilers/placement_view.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::reconcilers {

inline constexpr Duration kRestorePatience{2'000};

// Single-threaded: lives on the controller's strand.
class PodBinder {
 public:
  PodBinder(kube::Client& client, const Stores& stores, PlacementView& placement,
            const Clock& clock, Metrics& metrics)
      : client_(client), stores_(stores), placement_(placement), clock_(clock), metrics_(metrics) {}

  // Takes kRestorePatience longer than the API calls at most. Errors: those of the binding call;
  // conflict: the pod is bound already, or is another one of that name.
  kube::Task<Result<void>> bind(kube::Name pod, std::string uid, std::string node);

 private:
  kube::Task<void> restore(std::string pod, std::string node);

  kube::Client& client_;
  const Stores& stores_;
  PlacementView& placement_;
  const Clock& clock_;
  Metrics& metrics_;
};

// Does kwatt hold something on the node that slows it down, and may let go of it? A cap that keeps
// a budget stays whoever comes. Pure.
bool can_be_restored(const api::Node& node);

}  // namespace kwatt::reconcilers
