#pragma once
// What the pods of a node have asked for.
#include "planner/snapshot.hpp"

namespace kwatt::planner {

// Of the pods that have not ended.
Millicores requested_cpu(const NodeView& node);

}  // namespace kwatt::planner
