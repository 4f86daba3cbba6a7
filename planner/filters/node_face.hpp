#pragma once
// A node as the scheduling filters see it, from the planner's view.
#include "placement/node_face.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner::filters {

using placement::NodeFace;

// The node as it is; or, `as_if_awake`, as it will be once we have woken it: without our cordon,
// our taints, and the taints that Kubernetes puts on a node that is off or cordoned
// (not-ready, unreachable, out-of-service, unschedulable). A foreign cordon stays.
NodeFace face_of(const NodeView& view, bool as_if_awake);

// Cordoned, and not by us.
bool foreign_cordon(const NodeView& view);

}  // namespace kwatt::planner::filters
