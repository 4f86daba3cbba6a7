#include <algorithm>

#include <fmt/format.h>

#include "planner/filters/filters.hpp"

namespace kwatt::planner::filters::inter_pod_affinity {
namespace {

std::string describe(const api::PodAffinityTerm& term) {
  std::string text;
  for (const auto& [key, value] : term.label_selector.match_labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  for (const api::SelectorRequirement& r : term.label_selector.match_expressions) {
    text +=
        fmt::format("{}{} {} ({})", text.empty() ? "" : ",", r.key, r.op, fmt::join(r.values, ","));
  }
  return text.empty() ? "any labels" : text;
}

}  // namespace

bool term_matches(const api::PodAffinityTerm& term, const std::string& owner_namespace,
                  const std::string& pod_namespace, const api::StringMap& pod_labels) {
  if (!term.has_label_selector) return false;
  const bool in_namespace =
      term.any_namespace ||
      (term.namespaces.empty() ? pod_namespace == owner_namespace
                               : std::find(term.namespaces.begin(), term.namespaces.end(),
                                           pod_namespace) != term.namespaces.end());
  return in_namespace && api::matches(term.label_selector, pod_labels);
}

bool all_terms_match(const std::vector<api::PodAffinityTerm>& terms,
                     const std::string& owner_namespace, const std::string& pod_namespace,
                     const api::StringMap& pod_labels) {
  return std::all_of(terms.begin(), terms.end(), [&](const api::PodAffinityTerm& term) {
    return term_matches(term, owner_namespace, pod_namespace, pod_labels);
  });
}

std::string explain_affinity(const api::PodAffinityTerm& term) {
  return fmt::format("the pod must be with pods of {} in the same {}, and none is there",
                     describe(term), term.topology_key);
}

std::string explain_anti_affinity(const api::PodAffinityTerm& term) {
  return fmt::format("the pod must not be with pods of {} in the same {}", describe(term),
                     term.topology_key);
}

std::string explain_existing(const api::PodAffinityTerm& term) {
  return fmt::format("a pod there keeps pods of {} out of its {}", describe(term),
                     term.topology_key);
}

}  // namespace kwatt::planner::filters::inter_pod_affinity
