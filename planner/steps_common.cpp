#include "planner/steps_common.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/backoff.hpp"
#include "planner/destinations.hpp"
#include "planner/levers.hpp"
#include "planner/propose.hpp"

namespace kwatt::planner::steps {

Duration Context::in_step() const {
  return operation().step_started_at ? now() - *operation().step_started_at : Duration{0};
}

Duration Context::in_operation() const {
  return operation().started_at ? now() - *operation().started_at : Duration{0};
}

bool Context::past_deadline() const {
  return operation().deadline && now() >= *operation().deadline;
}

Step stay(const Context& context, Duration again_after, std::vector<Effect> effects) {
  Step step;
  step.next = context.status;
  step.effects = std::move(effects);
  step.again_after = again_after;
  return step;
}

Step go(const Context& context, std::string_view name, std::vector<Effect> effects,
        std::string message) {
  Step step = stay(context, kLook, std::move(effects));
  step.next.operation.step = name;
  step.next.operation.step_started_at = context.now();
  step.message = std::move(message);
  return step;
}

Step finish(api::NodePowerStatus next, const NodeView& node, Reason reason, std::string message,
            bool failed) {
  Step step;
  step.next = std::move(next);
  step.next.operation = {};
  // The owner is whoever must give something back one day.
  const api::NodeMemory& memory = step.next.memory;
  const bool holds = memory.powered_off_by_us || memory.cordoned_by_us ||
                     step.next.bmc.original_known ||
                     node.node->meta.annotations.contains(names::kRequest);
  if (!holds) step.next.memory.owner_policy.clear();
  step.again_after = Duration{0};
  step.finished = true;
  step.failed = failed;
  step.reason = reason;
  step.message = std::move(message);
  return step;
}

void decide(api::NodePowerStatus& status, api::Desired desired, Reason reason, std::string message,
            TimePoint now) {
  api::NodeDecision& decision = status.decision;
  const std::string word{api::to_string(reason)};
  if (decision.desired != desired || decision.reason != word || !decision.since) {
    decision.since = now;
  }
  decision.desired = desired;
  decision.reason = word;
  decision.message = std::move(message);
}

void back_off(api::NodeMemory& memory, TimePoint now) {
  memory.failure_count += 1;
  const int failures = static_cast<int>(std::min<std::int64_t>(memory.failure_count, 1000));
  memory.next_attempt = now + exponential(kFirstBackoff, kLongestBackoff, failures);
}

void count_cycle(api::NodeMemory& memory, TimePoint now) {
  const std::string today = day_of(now);
  if (memory.cycles_day != today) memory.cycles_today = 0;
  memory.cycles_day = today;
  memory.cycles_today += 1;
}

bool has_taint(const api::Node& node, std::string_view key) {
  return std::any_of(node.taints.begin(), node.taints.end(),
                     [&](const api::Taint& taint) { return taint.key == key; });
}

const api::Pod* workload_pod(const NodeView& node, bool leaving_too) {
  for (const auto& pod : node.pods) {
    if (pod->workload() && (leaving_too || !pod->deletion_timestamp)) return pod.get();
  }
  return nullptr;
}

PatchNode clean_patch(const Context& context, bool cordon_is_ours) {
  PatchNode patch;
  for (const std::string_view key : {names::kCandidateTaint, names::kPowerOffTaint}) {
    if (has_taint(context.node(), key)) patch.remove_taints.emplace_back(key);
  }
  if (context.node().meta.labels.contains(names::kLabelPower)) {
    patch.remove_labels.emplace_back(names::kLabelPower);
  }
  const api::Condition* suspended =
      api::find_condition(context.node().conditions, names::kSuspendedCondition);
  if (suspended != nullptr && suspended->status == "True") patch.suspended_condition = false;
  if (cordon_is_ours && context.node().unschedulable) patch.unschedulable = false;
  // What was asked of the node's own agent (wake-on-LAN). Only the pair is ours.
  if (context.node().meta.annotations.contains(names::kPowerOffBoot)) {
    patch.remove_annotations = {std::string(names::kPowerState), std::string(names::kPowerOffBoot)};
  }
  return patch;
}

bool is_so(const api::Node& node, const PatchNode& patch) {
  if (patch.unschedulable && *patch.unschedulable != node.unschedulable) return false;
  for (const api::Taint& taint : patch.add_taints) {
    const bool present = std::any_of(
        node.taints.begin(), node.taints.end(),
        [&](const api::Taint& t) { return t.key == taint.key && t.effect == taint.effect; });
    if (!present) return false;
  }
  for (const std::string& key : patch.remove_taints) {
    if (has_taint(node, key)) return false;
  }
  for (const auto& [key, value] : patch.set_annotations) {
    const std::string* is = node.meta.annotations.find(key);
    if (is == nullptr || *is != value) return false;
  }
  for (const auto& [key, value] : patch.set_labels) {
    const std::string* is = node.meta.labels.find(key);
    if (is == nullptr || *is != value) return false;
  }
  for (const std::string& key : patch.remove_annotations) {
    if (node.meta.annotations.contains(key)) return false;
  }
  for (const std::string& key : patch.remove_labels) {
    if (node.meta.labels.contains(key)) return false;
  }
  if (patch.suspended_condition) {
    const api::Condition* is = api::find_condition(node.conditions, names::kSuspendedCondition);
    if ((is != nullptr && is->status == "True") != *patch.suspended_condition) return false;
  }
  return true;
}

std::optional<Verdict> called_off(const Context& context) {
  const api::Node& node = context.node();
  const api::Operation& operation = context.operation();
  if (node.meta.annotations.get(names::kExclude) == "true") {
    return Verdict{Reason::Excluded, fmt::format("annotated {}=true meanwhile", names::kExclude)};
  }
  const bool takes_machine = operation.kind == api::OperationKind::PowerOff;
  if (takes_machine && override_of(*context.seen.node, context.now()).kind == Override::Kind::on) {
    return Verdict{Reason::Manual, fmt::format("held on by {} meanwhile", names::kOverride)};
  }
  if (takes_machine) {
    if (auto verdict = foreign_owner(*context.seen.node)) return verdict;
  }
  if (context.spec.mode != api::Mode::Enforce) {
    return Verdict{Reason::RecommendOnly,
                   fmt::format("policy {} does not enforce any more", operation.policy)};
  }
  if (!api::matches(context.spec.node_selector, node.meta.labels)) {
    return Verdict{Reason::NotSelected,
                   fmt::format("policy {} does not select the node any more", operation.policy)};
  }
  // A pass that needs the node, or is halted, says so in the decision; it cannot begin anything
  // meanwhile.
  const bool takes_pods = takes_machine || operation.kind == api::OperationKind::Migrate;
  if (takes_pods && context.status.decision.desired == api::Desired::On) {
    const Reason reason =
        api::parse_reason(context.status.decision.reason).value_or(Reason::PendingPods);
    const bool halted = reason == Reason::TooManyUnready;
    return Verdict{reason, (halted ? "called off: " : "the node is needed: ") +
                               context.status.decision.message};
  }
  return std::nullopt;
}

}  // namespace kwatt::planner::steps

namespace kwatt::planner {

bool PatchNode::empty() const {
  return !unschedulable && add_taints.empty() && remove_taints.empty() && set_annotations.empty() &&
         set_labels.empty() && remove_annotations.empty() && remove_labels.empty() &&
         !suspended_condition;
}

}  // namespace kwatt::planner
