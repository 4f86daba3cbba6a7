#pragma once
// Emptying one node: every workload pod with a reserved destination, or the reason why not.
#include <variant>

#include "planner/candidates.hpp"
#include "planner/destination_choice.hpp"
#include "planner/levers.hpp"

namespace kwatt::planner {

struct Drained {
  struct Requests {
    Millicores cpu;
    Bytes memory;
  };
  std::vector<api::PodMove> moves;  // in the order of the node's pods
  std::map<NodeName, Requests> to;  // what moves, by destination
};

// On success the node is no destination any more and the reservations stay in pass.what_if; on
// failure nothing has changed. Pods that are terminating already need no destination.
std::variant<Drained, Verdict> drain(Pass& pass, const Candidates& candidates,
                                     DestinationChoice& choice, const NodeView& node);

// Pods that keep the machine in use now.
std::size_t workload_count(const NodeView& node);

// May these nodes go without the awake ones falling below minAwake and minAwakePerZone? Counts
// down as nodes are taken. Nodes that an earlier lever of this pass takes away are not destinations
// any more and do not count.
class AwakeCount {
 public:
  explicit AwakeCount(const Pass& pass);
  // Why the node may not go; nullopt: it may, and is counted out. Call it before drain().
  std::optional<Verdict> take(const NodeView& node);
  // Takes that back, once the node is a destination again.
  void put_back(const NodeView& node);

 private:
  bool counted(const NodeView& node) const;
  const Pass& pass_;
  std::int64_t awake_ = 0;
  std::map<std::string, std::int64_t> per_zone_;  // nodes without a zone label count in none
};

}  // namespace kwatt::planner
