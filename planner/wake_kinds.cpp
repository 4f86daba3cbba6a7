#include "planner/wake_kinds.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "planner/filters/node_face.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;

constexpr std::string_view kHostname = "kubernetes.io/hostname";

// Node labels that decide whether one of these pods fits.
std::set<std::string> relevant_labels(const std::vector<PodPtr>& pods) {
  std::set<std::string> keys = {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
  std::unordered_set<const api::PodTemplate*> seen;
  for (const PodPtr& pod : pods) {
    if (!seen.insert(pod->spec.get()).second) continue;
    for (const auto& [key, value] : pod->spec->node_selector) keys.insert(key);
    for (const auto& term : pod->spec->required_node_affinity) {
      for (const auto& requirement : term.match_expressions) keys.insert(requirement.key);
    }
    for (const auto& spread : pod->spec->topology_spread) keys.insert(spread.topology_key);
    for (const auto& term : pod->spec->required_pod_affinity) keys.insert(term.topology_key);
    for (const auto& term : pod->spec->required_pod_anti_affinity) keys.insert(term.topology_key);
  }
  keys.erase(std::string{kHostname});
  return keys;
}

// Does the pod tell one node from another that has the same labels?
bool names_nodes(const api::PodTemplate& spec) {
  return !spec.claims.empty() || spec.node_selector.contains(kHostname) ||
         std::any_of(spec.required_node_affinity.begin(), spec.required_node_affinity.end(),
                     [](const api::NodeSelectorTerm& term) {
                       return !term.match_fields.empty() ||
                              std::any_of(term.match_expressions.begin(),
                                          term.match_expressions.end(),
                                          [](const auto& r) { return r.key == kHostname; });
                     });
}

std::vector<PodPtr> picky_pods(const std::vector<PodPtr>& pods) {
  std::vector<PodPtr> picky;
  std::set<std::pair<const api::PodTemplate*, std::string>> seen;
  for (const PodPtr& pod : pods) {
    if (names_nodes(*pod->spec) && seen.emplace(pod->spec.get(), pod->namespace_name).second) {
      picky.push_back(pod);
    }
  }
  return picky;
}

using Taints = std::vector<std::tuple<std::string, std::string, std::string>>;
using Key = std::tuple<int, api::Resources, std::array<Milliwatts, 11>, Millijoules, bool, Taints,
                       std::vector<std::string>, std::vector<bool>, std::size_t>;

Key key_of(Pass& pass, const WakeCandidate& candidate, const std::set<std::string>& labels,
           const std::vector<PodPtr>& picky) {
  const NodeView& node = *candidate.node;
  const filters::NodeFace face = filters::face_of(node, true);
  Taints taints;
  for (const api::Taint* taint : face.taints) {
    taints.emplace_back(taint->key, taint->value, taint->effect);
  }
  std::vector<std::string> values;
  for (const std::string& label : labels) {
    const std::string* value = node.node->meta.labels.find(label);
    values.push_back(value == nullptr ? "" : "=" + *value);
  }
  std::vector<bool> takes;
  if (!picky.empty()) {
    const std::size_t mark = pass.what_if.mark();
    pass.what_if.assume_awake(node.name());
    for (const PodPtr& pod : picky) takes.push_back(pass.what_if.can_take(*pod, node.name()));
    pass.what_if.rollback(mark);
  }
  return {candidate.rank,         node.node->allocatable, node.model.curve.points,
          node.model.boot_energy, face.unschedulable,     std::move(taints),
          std::move(values),      std::move(takes),       node.pods.size()};
}

}  // namespace

std::vector<WakeKind> kinds_of(Pass& pass, const std::vector<WakeCandidate>& candidates,
                               const std::vector<PodPtr>& pods) {
  const std::set<std::string> labels = relevant_labels(pods);
  const std::vector<PodPtr> picky = picky_pods(pods);
  std::map<Key, WakeKind> kinds;
  for (const WakeCandidate& candidate : candidates) {
    WakeKind& kind = kinds[key_of(pass, candidate, labels, picky)];
    kind.rank = candidate.rank;
    kind.nodes.push_back(candidate.node);
  }
  std::vector<WakeKind> sorted;
  for (auto& [key, kind] : kinds) {
    std::sort(kind.nodes.begin(), kind.nodes.end(),
              [](const NodeView* a, const NodeView* b) { return a->name() < b->name(); });
    const NodeView& node = *kind.nodes.front();
    const Millicores cpu = node.node->allocatable.cpu;
    const std::int64_t cores = std::max<std::int64_t>(1, cpu.count() / 1000);
    kind.per_core = wake_increase(node, cpu / 2, pass.spec.power_off) / cores;
    sorted.push_back(std::move(kind));
  }
  std::sort(sorted.begin(), sorted.end(), [](const WakeKind& a, const WakeKind& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.per_core != b.per_core) return a.per_core < b.per_core;
    return a.nodes.front()->name() < b.nodes.front()->name();
  });
  return sorted;
}

}  // namespace kwatt::planner
