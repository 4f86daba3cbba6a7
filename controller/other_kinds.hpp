#pragma once
// Kinds of other projects that kwatt heeds where they are: CapacityBuffers and their PodTemplates,
// NodeHealthChecks, node maintenance Leases. Watched only while the API server has them.
#include <memory>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::controller {

class OtherKinds {
 public:
  // `client`, `clock` and `metrics` outlive it.
  OtherKinds(kube::Client& client, const Clock& clock, Metrics& metrics);
  ~OtherKinds();

  // Asks the API server now and then what it has, and watches that, in the background until the
  // executor ends. A kind that is gone counts as empty.
  void start(const boost::asio::any_io_executor& executor);

  const reconcilers::OtherStores& stores() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
