#include "placement/node_face.hpp"

namespace kwatt::placement {

NodeFace face_of(const api::Node& node) {
  NodeFace face;
  face.node = &node;
  face.unschedulable = node.unschedulable;
  for (const api::Taint& taint : node.taints) {
    if (taint.effect != "PreferNoSchedule") face.taints.push_back(&taint);
  }
  return face;
}

}  // namespace kwatt::placement
