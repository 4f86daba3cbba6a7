#pragma once
// A node as the scheduling filters see it.
#include <vector>

#include "planner/snapshot.hpp"

namespace kwatt::planner::filters {

struct NodeFace {
  const api::Node* node = nullptr;
  bool unschedulable = false;
  std::vector<const api::Taint*> taints;  // NoSchedule and NoExecute; the others only score
};

// The node as it is; or, `as_if_awake`, as it will be once we have woken it: without our cordon,
// our taints, and the taints that Kubernetes puts on a node that is off or cordoned
// (not-ready, unreachable, out-of-service, unschedulable). A foreign cordon stays.
NodeFace face_of(const NodeView& view, bool as_if_awake);

// Cordoned, and not by us.
bool foreign_cordon(const NodeView& view);

}  // namespace kwatt::planner::filters
