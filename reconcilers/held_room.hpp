#pragma once
// Room that drains and migrations under way have reserved on other nodes, until the replacements
// are there: what an operation's moves say, kept beyond the eviction, when the pod that left is
// gone and its replacement waits for kube-scheduler.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/core.hpp"
#include "api/node_power.hpp"
#include "placement/node_info.hpp"

namespace kwatt::reconcilers {

// Pure bookkeeping on the controller's strand. Rebuilt from the operations after a restart, but for
// pods that were gone by then.
class HeldRoom {
 public:
  // Called with each node whose reservations have changed.
  using Changed = std::function<void(const std::string& node)>;
  // A replacement that has not come for so long after its pod had gone will not come.
  static constexpr Duration kPatience = std::chrono::minutes{5};

  explicit HeldRoom(Changed changed) : changed_(std::move(changed)) {}

  // The NodePower of `node` is as it is now; `pods` are those bound to that node. An operation that
  // ended with the pod still there was called off.
  void operation(const std::string& node, const api::Operation& operation,
                 const std::vector<std::shared_ptr<const api::Pod>>& pods, TimePoint now);
  // A pod is gone; a pod was bound, which may be a replacement.
  void gone(const api::Pod& pod, TimePoint now);
  void bound(const api::Pod& pod);
  // Forgets what nobody comes for any more.
  void expire(TimePoint now);

  // Room kept on this node, sorted by the uid of the pod that left.
  std::vector<placement::Reservation> on(const std::string& node) const;

 private:
  struct Held {
    std::string from, to;
    placement::Reservation room;
    TimePoint since;
    std::optional<TimePoint> gone_at;
  };
  std::map<std::string, Held> held_;  // by uid of the pod that leaves
  Changed changed_;
};

}  // namespace kwatt::reconcilers
