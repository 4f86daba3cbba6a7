#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::node_unschedulable {

bool passes(const api::PodTemplate& pod, const NodeFace& node) {
  if (!node.unschedulable) return true;
  static const api::Taint kCordon{"node.kubernetes.io/unschedulable", "", "NoSchedule", {}};
  return api::tolerates(pod.tolerations, kCordon);
}

std::string explain(const NodeFace& node) {
  return fmt::format("node {} is cordoned", node.node->meta.name);
}

}  // namespace kwatt::placement::filters::node_unschedulable
