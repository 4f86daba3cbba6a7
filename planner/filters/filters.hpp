#pragma once
// kube-scheduler's filters, under its names. Those that look at one pod and one node alone are
// placement's; here are the ones that need the rest of the snapshot. Each answers passes(), which
// the what-if asks millions of times, and explain(), asked once for a person after passes() said
// no: a sentence without a final period. All are pure functions of what they are given.
#include <string>
#include <string_view>
#include <vector>

#include "placement/filters/filters.hpp"
#include "planner/filters/node_face.hpp"

namespace kwatt::planner::filters {

using placement::filters::Amounts;
using placement::filters::amounts_of;
using placement::filters::ResourceNames;
namespace scheduling_gates = placement::filters::scheduling_gates;
namespace node_unschedulable = placement::filters::node_unschedulable;
namespace taint_toleration = placement::filters::taint_toleration;
namespace node_affinity = placement::filters::node_affinity;
namespace node_resources_fit = placement::filters::node_resources_fit;
namespace node_ports = placement::filters::node_ports;

// Claims bound to volumes that the node reaches. A claim that is not bound yet (or unknown) refuses
// every node: where its volume will come up is not ours to foresee.
namespace volume_binding {
inline constexpr std::string_view kName = "VolumeBinding";
bool passes(const std::string& namespace_name, const api::PodTemplate& pod, const api::Node& node,
            const Snapshot& snapshot);
std::string explain(const std::string& namespace_name, const api::PodTemplate& pod,
                    const api::Node& node, const Snapshot& snapshot);
}  // namespace volume_binding

// Required affinity and anti-affinity between pods. The counting per topology domain is PodIndex's;
// here is what a term means.
namespace inter_pod_affinity {
inline constexpr std::string_view kName = "InterPodAffinity";
// Does `term` of a pod in `owner_namespace` speak of a pod with these labels?
bool term_matches(const api::PodAffinityTerm& term, const std::string& owner_namespace,
                  const std::string& pod_namespace, const api::StringMap& pod_labels);
// A pod counts for required affinity only if all terms speak of it.
bool all_terms_match(const std::vector<api::PodAffinityTerm>& terms,
                     const std::string& owner_namespace, const std::string& pod_namespace,
                     const api::StringMap& pod_labels);
std::string explain_affinity(const api::PodAffinityTerm& term);
std::string explain_anti_affinity(const api::PodAffinityTerm& term);
std::string explain_existing(const api::PodAffinityTerm& term);
}  // namespace inter_pod_affinity

// Topology spread constraints with DoNotSchedule.
namespace pod_topology_spread {
inline constexpr std::string_view kName = "PodTopologySpread";
// Is this node part of the domains that `constraint` (one of the pod's) compares? It needs all
// topology keys of all constraints, and what the two policies honour.
bool counts_node(const api::PodTemplate& pod, const api::TopologySpreadConstraint& constraint,
                 const NodeFace& node);
// `in_domain` matching pods where the pod would go, `minimum` over all `domains`.
bool passes(const api::TopologySpreadConstraint& constraint, bool self_match,
            std::int64_t in_domain, std::int64_t minimum, std::int64_t domains);
std::string explain_skew(const api::TopologySpreadConstraint& constraint, std::int64_t in_domain,
                         std::int64_t minimum);
std::string explain_missing_key(const api::TopologySpreadConstraint& constraint);
}  // namespace pod_topology_spread

}  // namespace kwatt::planner::filters
