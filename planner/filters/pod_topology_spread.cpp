#include <algorithm>

#include <fmt/format.h>

#include "planner/filters/filters.hpp"

namespace kwatt::planner::filters::pod_topology_spread {

bool counts_node(const api::PodTemplate& pod, const api::TopologySpreadConstraint& constraint,
                 const NodeFace& node) {
  const bool has_keys =
      std::all_of(pod.topology_spread.begin(), pod.topology_spread.end(), [&](const auto& other) {
        return !other.do_not_schedule || node.node->meta.labels.contains(other.topology_key);
      });
  return has_keys &&
         (constraint.node_affinity_policy != "Honor" || node_affinity::passes(pod, *node.node)) &&
         (constraint.node_taints_policy != "Honor" || taint_toleration::passes(pod, node));
}

bool passes(const api::TopologySpreadConstraint& constraint, bool self_match,
            std::int64_t in_domain, std::int64_t minimum, std::int64_t domains) {
  if (constraint.min_domains && domains < *constraint.min_domains) minimum = 0;
  return in_domain + (self_match ? 1 : 0) - minimum <= constraint.max_skew;
}

std::string explain_skew(const api::TopologySpreadConstraint& constraint, std::int64_t in_domain,
                         std::int64_t minimum) {
  return fmt::format("one more pod in this {} would exceed maxSkew {}: {} there, {} at least",
                     constraint.topology_key, constraint.max_skew, in_domain, minimum);
}

std::string explain_missing_key(const api::TopologySpreadConstraint& constraint) {
  return fmt::format("the node lacks the label {} of a topology spread constraint",
                     constraint.topology_key);
}

}  // namespace kwatt::planner::filters::pod_topology_spread
