#pragma once
// The filters of kube-scheduler that look at one pod and one node, under its names: the planner's
// what-if and the plugins ask the same ones. Each answers passes(), asked millions of times, and
// explain(), asked once for a person after passes() said no: a sentence without a final period. All
// are pure functions of what they are given.
#include <string>
#include <string_view>
#include <vector>

#include "placement/filters/amounts.hpp"
#include "placement/node_face.hpp"

namespace kwatt::placement::filters {

// Pods with scheduling gates are not scheduled at all.
namespace scheduling_gates {
inline constexpr std::string_view kName = "SchedulingGates";
bool passes(const api::PodTemplate& pod);
std::string explain();
}  // namespace scheduling_gates

// spec.unschedulable, unless the pod tolerates node.kubernetes.io/unschedulable:NoSchedule.
namespace node_unschedulable {
inline constexpr std::string_view kName = "NodeUnschedulable";
bool passes(const api::PodTemplate& pod, const NodeFace& node);
std::string explain(const NodeFace& node);
}  // namespace node_unschedulable

// Every NoSchedule and NoExecute taint must be tolerated.
namespace taint_toleration {
inline constexpr std::string_view kName = "TaintToleration";
bool passes(const api::PodTemplate& pod, const NodeFace& node);
std::string explain(const api::PodTemplate& pod, const NodeFace& node);
}  // namespace taint_toleration

// nodeSelector and required node affinity, matchFields among it.
namespace node_affinity {
inline constexpr std::string_view kName = "NodeAffinity";
bool passes(const api::PodTemplate& pod, const api::Node& node);
// Without matchFields: what a DaemonSet wants of a node on which it has no pod yet.
bool passes_ignoring_fields(const api::PodTemplate& pod, const api::Node& node);
std::string explain(const api::PodTemplate& pod, const api::Node& node);
// ORed terms against one node; a term without requirements matches nothing, no terms match all.
bool matches_terms(const std::vector<api::NodeSelectorTerm>& terms, const api::Node& node);
}  // namespace node_affinity

// cpu, memory, ephemeral storage, pod count and extended resources. What a pod does not request is
// not checked, so a node that is overcommitted in one resource still takes pods that need none of
// it.
namespace node_resources_fit {
inline constexpr std::string_view kName = "NodeResourcesFit";
inline bool enough(std::int64_t need, std::int64_t free) {
  return need <= 0 || need <= free;
}
inline bool passes(const Amounts& need, const Amounts& free) {
  if (free.pods < need.pods || !enough(need.cpu, free.cpu) || !enough(need.memory, free.memory) ||
      !enough(need.ephemeral, free.ephemeral)) {
    return false;
  }
  for (std::size_t i = 0; i < need.extended.size(); ++i) {
    const std::int64_t have = i < free.extended.size() ? free.extended[i] : 0;
    if (!enough(need.extended[i], have)) return false;
  }
  return true;
}
std::string explain(const Amounts& need, const Amounts& free, const ResourceNames& names);
// The same for amounts as the objects have them; need.pods is how many pods come.
bool passes(const api::Resources& need, const api::Resources& free);
std::string explain(const api::Resources& need, const api::Resources& free);
}  // namespace node_resources_fit

// Host ports: the same port and protocol on the same address; 0.0.0.0 overlaps all addresses.
namespace node_ports {
inline constexpr std::string_view kName = "NodePorts";
bool conflict(const api::HostPort& a, const api::HostPort& b);
bool conflict(const std::vector<api::HostPort>& a, const std::vector<api::HostPort>& b);
std::string explain(const std::vector<api::HostPort>& wanted);
}  // namespace node_ports

}  // namespace kwatt::placement::filters
