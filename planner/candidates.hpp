#pragma once
// Which pods may be moved at all: the vetoes and defaults of cluster-autoscaler, Karpenter and the
// descheduler (api.md), and PodDisruptionBudgets.
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/plan.hpp"

namespace kwatt::planner {

// Answers are cached per template and namespace; `snapshot` must outlive it. Not thread-safe.
class Candidates {
 public:
  Candidates(const Snapshot& snapshot, const api::DisruptionSpec& disruption);

  // Why this workload pod must stay where it is; nullopt: it may be evicted. PodNotMovable,
  // LocalStorage, DoNotDisrupt or PDBBlocked, with the pod's name in the sentence. A budget that
  // allows at least one disruption does not block, however many pods it covers: evictions are
  // retried one after the other. Pods already terminating are not asked about.
  std::optional<Verdict> immovable(const api::Pod& pod) const;

 private:
  using Budgets = std::vector<const api::PodDisruptionBudget*>;
  const Budgets& budgets_of(const api::Pod& pod) const;

  std::optional<std::string> too_few(const api::Pod& pod) const;

  const Snapshot& snapshot_;
  const api::DisruptionSpec& disruption_;
  std::unordered_map<std::string, Budgets> by_namespace_;
  mutable std::unordered_map<std::string, std::unordered_map<const api::PodTemplate*, Budgets>>
      cache_;
};

// Annotations of a pod or node that forbid disruption: the key of one that is set, or "".
std::string_view do_not_disrupt(const api::StringMap& annotations);

}  // namespace kwatt::planner
