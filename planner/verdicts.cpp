#include "planner/verdicts.hpp"

#include <fmt/format.h>

#include "api/state_words.hpp"

namespace kwatt::planner {

Weight weight_of(Lever lever, Reason reason) {
  if (reason == Reason::LeverDisabled) return Weight::off;
  // Power decides: what dvfs and capping say of an ordinary node is shown only for want of better.
  const bool settings = lever == Lever::dvfs || lever == Lever::capping;
  switch (reason) {
    case Reason::OutOfRange:
    case Reason::AgentStale:
    case Reason::OverBudget:
      return Weight::exceptional;
    case Reason::Manual:
    case Reason::StaleTelemetry:
      return settings ? Weight::usual : Weight::exceptional;
    case Reason::PowerHigh:
      return Weight::exceptional;
    case Reason::InUse:
    case Reason::Idle:
    case Reason::IdleWait:
    case Reason::LowUtilization:
    case Reason::HighLoad:
    case Reason::InProgress:
      return settings ? Weight::quiet : Weight::usual;
    default:
      break;
  }
  if (settings) return Weight::quiet;
  // Why a node with pods is not emptied says more than that it has pods.
  return lever == Lever::migrate ? Weight::exceptional : Weight::decisive;
}

void Verdicts::add(const NodeName& name, Verdict verdict, Weight weight) {
  const auto [at, fresh] = chosen_.try_emplace(name, Entry{verdict, weight});
  if (!fresh && weight > at->second.weight) at->second = {std::move(verdict), weight};
}

bool Verdicts::fixed(const NodeName& name) const {
  const auto at = chosen_.find(name);
  return at != chosen_.end() && at->second.weight == Weight::fixed;
}

std::optional<Verdict> Verdicts::take(const NodeName& name) {
  const auto at = chosen_.find(name);
  if (at == chosen_.end()) return std::nullopt;
  return std::move(at->second.verdict);
}

std::optional<Verdict> fixed_verdict(const NodeView& node) {
  if (node.node->meta.annotations.get(names::kExclude) == "true") {
    return Verdict{Reason::Excluded, fmt::format("annotated {}=true", names::kExclude)};
  }
  const api::Operation& operation = node.operation();
  if (!operation.id.empty()) {
    return Verdict{Reason::InProgress,
                   fmt::format("{} of policy {} is at step {}", phrase(operation.kind),
                               operation.policy, operation.step)};
  }
  return std::nullopt;
}

Verdict no_driver(const NodeView& node) {
  return {Reason::NoDriver, node.driver_problem.empty()
                                ? "no power driver: spec.bmc.address of its NodePower is empty"
                                : "no power driver: " + node.driver_problem};
}

Verdict default_verdict(const api::EnergyPolicySpec& spec, const NodeView* node) {
  if (node == nullptr) return {Reason::NotSynced, "the Node is not in the cache"};
  const bool any = spec.power_on.enabled || spec.power_off.enabled || spec.migration.enabled ||
                   spec.dvfs.enabled || spec.capping.enabled;
  if (!any) return {Reason::LeverDisabled, "all levers of the policy are off"};
  if (!node->ready) return {Reason::NodeNotReady, "the node is not Ready"};
  return {Reason::InUse, "nothing is to be done"};
}

}  // namespace kwatt::planner
