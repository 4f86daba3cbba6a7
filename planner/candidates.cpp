#include "planner/candidates.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace kwatt::planner {
namespace {

constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";

// Set to "true" they forbid disruption; the descheduler's counts by its presence.
constexpr std::array<std::string_view, 2> kDoNotDisrupt = {"karpenter.sh/do-not-disrupt",
                                                           "kwatt.dev/do-not-disrupt"};
constexpr std::string_view kNoEviction = "descheduler.alpha.kubernetes.io/prefer-no-eviction";

// Owners that start a replacement elsewhere; cluster-autoscaler skips others by default.
constexpr std::array<std::string_view, 4> kReplacing = {"ReplicaSet", "StatefulSet", "Job",
                                                        "ReplicationController"};

Verdict verdict(Reason reason, const api::Pod& pod, std::string_view why) {
  return {reason, fmt::format("pod {} {}", pod.key(), why)};
}

}  // namespace

std::string_view do_not_disrupt(const api::StringMap& annotations) {
  for (const std::string_view key : kDoNotDisrupt) {
    if (annotations.get(key) == "true") return key;
  }
  const std::string* no_eviction = annotations.find(kNoEviction);
  return no_eviction != nullptr && *no_eviction != "false" ? kNoEviction : std::string_view{};
}

Candidates::Candidates(const Snapshot& snapshot, const api::DisruptionSpec& disruption)
    : snapshot_(snapshot), disruption_(disruption) {
  for (const auto& budget : snapshot.budgets) {
    if (budget->has_selector) by_namespace_[budget->meta.namespace_name].push_back(budget.get());
  }
}

const Candidates::Budgets& Candidates::budgets_of(const api::Pod& pod) const {
  static const Budgets none;
  const auto all = by_namespace_.find(pod.namespace_name);
  if (all == by_namespace_.end()) return none;
  const auto [at, added] = cache_[pod.namespace_name].try_emplace(pod.spec.get());
  if (added) {
    for (const api::PodDisruptionBudget* budget : all->second) {
      if (api::matches(budget->selector, pod.spec->labels)) at->second.push_back(budget);
    }
  }
  return at->second;
}

// disruption.minReplicas; owners whose wanted replicas are not known (a Job) are not asked.
std::optional<std::string> Candidates::too_few(const api::Pod& pod) const {
  if (disruption_.min_replicas <= 0) return std::nullopt;
  const auto wanted = snapshot_.replicas.find(pod.owner->uid);
  if (wanted == snapshot_.replicas.end() || wanted->second >= disruption_.min_replicas) {
    return std::nullopt;
  }
  return fmt::format("belongs to {} {} of {} replicas; disruption.minReplicas is {}",
                     pod.owner->kind, pod.owner->name, wanted->second, disruption_.min_replicas);
}

std::optional<Verdict> Candidates::immovable(const api::Pod& pod) const {
  const std::string_view safe = pod.annotations.get(kSafeToEvict);
  if (disruption_.respect_do_not_disrupt) {
    if (safe == "false") {
      return verdict(Reason::DoNotDisrupt, pod, fmt::format("is annotated {}=false", kSafeToEvict));
    }
    if (const std::string_view key = do_not_disrupt(pod.annotations); !key.empty()) {
      return verdict(Reason::DoNotDisrupt, pod, fmt::format("is annotated {}", key));
    }
  }
  // It would survive our NoExecute taint, and the machine would never be empty.
  const api::Taint ours{std::string{names::kPowerOffTaint}, "", "NoExecute", {}};
  if (api::tolerates(pod.spec->tolerations, ours)) {
    return verdict(Reason::PodNotMovable, pod,
                   fmt::format("tolerates {} and is of no DaemonSet", names::kPowerOffTaint));
  }
  // safe-to-evict=true lifts what follows, but never a disruption budget.
  const Budgets& budgets = budgets_of(pod);
  if (safe != "true") {
    if (pod.owner == nullptr) {
      return verdict(Reason::PodNotMovable, pod, "has no controller that would replace it");
    }
    if (std::find(kReplacing.begin(), kReplacing.end(), pod.owner->kind) == kReplacing.end()) {
      return verdict(Reason::PodNotMovable, pod,
                     fmt::format("belongs to a {}, which may not replace it", pod.owner->kind));
    }
    if (auto why = too_few(pod)) return verdict(Reason::PodNotMovable, pod, *why);
    if (pod.spec->local_storage) {
      return verdict(Reason::LocalStorage, pod, "has local storage that would be lost");
    }
    if (pod.namespace_name == "kube-system" && budgets.empty()) {
      return verdict(Reason::PodNotMovable, pod, "is in kube-system without a disruption budget");
    }
  }
  if (budgets.size() > 1) {
    return verdict(Reason::PDBBlocked, pod,
                   "is covered by more than one disruption budget, which the Eviction API refuses");
  }
  if (budgets.size() == 1 && budgets.front()->disruptions_allowed <= 0) {
    return verdict(Reason::PDBBlocked, pod,
                   fmt::format("may not be disrupted: budget {} allows 0 disruptions now",
                               budgets.front()->meta.name));
  }
  return std::nullopt;
}

}  // namespace kwatt::planner
