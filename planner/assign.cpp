// Which policy has each node.
#include <algorithm>

#include "planner/plan.hpp"

namespace kwatt::planner {
namespace {

// Highest priority first, then the oldest, then by name.
bool precedes(const api::EnergyPolicy& a, const api::EnergyPolicy& b) {
  if (a.spec.priority != b.spec.priority) return a.spec.priority > b.spec.priority;
  if (a.meta.creation_timestamp != b.meta.creation_timestamp) {
    return a.meta.creation_timestamp < b.meta.creation_timestamp;
  }
  return a.meta.name < b.meta.name;
}

}  // namespace

Assignment assign(const Snapshot& snapshot,
                  const std::vector<std::shared_ptr<const api::EnergyPolicy>>& policies) {
  std::vector<const api::EnergyPolicy*> order;
  for (const auto& policy : policies) {
    if (policy == nullptr || policy->meta.deletion_timestamp) continue;
    if (!api::validate(policy->spec).empty()) continue;
    order.push_back(policy.get());
  }
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return precedes(*a, *b); });
  Assignment assignment;
  for (const auto* policy : order) assignment.selected[policy->meta.name];
  for (const auto& [name, node] : snapshot.nodes) {
    const api::EnergyPolicy* winner = nullptr;
    for (const auto* policy : order) {
      if (!api::matches(policy->spec.node_selector, node.node->meta.labels)) continue;
      if (winner == nullptr) {
        winner = policy;
        assignment.selected[policy->meta.name].push_back(name);
      } else {
        assignment.lost[policy->meta.name].push_back({name, winner->meta.name});
      }
    }
  }
  return assignment;
}

}  // namespace kwatt::planner
