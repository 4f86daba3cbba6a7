#include <algorithm>

#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::node_affinity {
namespace {

bool selector_matches(const api::PodTemplate& pod, const api::Node& node) {
  return std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& wanted) {
    const std::string* have = node.meta.labels.find(wanted.first);
    return have != nullptr && *have == wanted.second;
  });
}

// metadata.name is the only field Kubernetes allows here.
bool field_matches(const api::SelectorRequirement& requirement, const api::Node& node) {
  return requirement.key == "metadata.name" &&
         api::matches(requirement, api::StringMap{{"metadata.name", node.meta.name}});
}

bool labels_match(const api::NodeSelectorTerm& term, const api::Node& node) {
  return std::all_of(term.match_expressions.begin(), term.match_expressions.end(),
                     [&](const auto& r) { return api::matches(r, node.meta.labels); });
}

bool term_matches(const api::NodeSelectorTerm& term, const api::Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  return labels_match(term, node) &&
         std::all_of(term.match_fields.begin(), term.match_fields.end(),
                     [&](const auto& r) { return field_matches(r, node); });
}

}  // namespace

bool matches_terms(const std::vector<api::NodeSelectorTerm>& terms, const api::Node& node) {
  return terms.empty() || std::any_of(terms.begin(), terms.end(),
                                      [&](const auto& term) { return term_matches(term, node); });
}

bool passes(const api::PodTemplate& pod, const api::Node& node) {
  return selector_matches(pod, node) && matches_terms(pod.required_node_affinity, node);
}

bool passes_ignoring_fields(const api::PodTemplate& pod, const api::Node& node) {
  const auto& terms = pod.required_node_affinity;
  return selector_matches(pod, node) &&
         (terms.empty() || std::any_of(terms.begin(), terms.end(),
                                       [&](const auto& term) { return labels_match(term, node); }));
}

std::string explain(const api::PodTemplate& pod, const api::Node& node) {
  for (const auto& [key, value] : pod.node_selector) {
    const std::string* have = node.meta.labels.find(key);
    if (have == nullptr || *have != value) {
      return fmt::format("the pod's nodeSelector wants {}={}, node {} has {}", key, value,
                         node.meta.name, have == nullptr ? "no such label" : *have);
    }
  }
  return fmt::format("node {} matches no term of the pod's required node affinity", node.meta.name);
}

}  // namespace kwatt::placement::filters::node_affinity
