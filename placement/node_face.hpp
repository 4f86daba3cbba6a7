#pragma once
// A node as the scheduling filters see it.
#include <vector>

#include "api/core.hpp"

namespace kwatt::placement {

// Points into the node, which must outlive it.
struct NodeFace {
  const api::Node* node = nullptr;
  bool unschedulable = false;
  std::vector<const api::Taint*> taints;  // NoSchedule and NoExecute; the others only score
};

// The node as it is.
NodeFace face_of(const api::Node& node);

}  // namespace kwatt::placement
