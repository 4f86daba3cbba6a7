// SetFrequency and SetCap: Annotate → WaitApplied → Label. The agent does the work; what it says it
// has applied becomes a label. Keys that people set by hand are never written or removed. A cap by
// the BMC has SetLimit → WaitLimit in place of the first two (steps_limit.cpp). When a cap changes
// hands, the new one is in force before the old one goes.
#include <algorithm>

#include <fmt/format.h>

#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

bool is_cap(const Context& context) {
  return context.operation().kind == api::OperationKind::SetCap;
}

bool by_bmc(const Context& context) {
  return is_cap(context) && context.operation().cap_by == api::CapBy::BMC;
}

const std::set<std::string>& keys_of(const Context& context) {
  static const std::set<std::string> cap = {std::string(names::kPowerCap)};
  return is_cap(context) ? cap : frequency_keys();
}

bool low(const api::Operation& operation) {
  return operation.reason == api::to_string(Reason::LowUtilization) ||
         operation.reason == api::to_string(Reason::Idle);
}

// The annotations as they shall be: ours among these keys replaced by the request, and one note for
// all that is ours on the node.
PatchNode annotate_patch(const Context& context) {
  const api::Operation& operation = context.operation();
  RequestNote note = request_on(context.node());
  PatchNode patch;
  patch.set_annotations = annotations_of(operation.request);
  for (const std::string& key : keys_of(context)) {
    if (patch.set_annotations.contains(key)) {
      note.keys.insert(key);
    } else if (note.keys.erase(key) > 0) {
      patch.remove_annotations.push_back(key);
    }
  }
  // Whoever asked for the full speed has been heard.
  if (context.node().meta.annotations.contains(names::kRestore)) {
    patch.remove_annotations.emplace_back(names::kRestore);
  }
  // Caps in force plus the maxima of uncapped machines stay within a budget only as long as the
  // caps do: whoever lets go of one lets the others be too high.
  note.keep_cap = note.keys.count(std::string(names::kPowerCap)) > 0 &&
                  context.spec.capping.enabled && context.spec.capping.budget_watts > 0;
  note.id = operation.id;
  note.time = operation.started_at;
  note.policy = operation.policy;
  patch.set_annotations.set(names::kRequest, format_request(note));
  return patch;
}

PatchNode label_patch(const Context& context) {
  PatchNode patch;
  const api::Operation& operation = context.operation();
  if (!is_cap(context)) {
    patch.set_labels.set(names::kLabelFrequency, low(operation) ? "low" : "normal");
  } else if (operation.request.power_cap_watts) {
    patch.set_labels.set(names::kLabelCapped, "true");
  } else if (context.node().meta.labels.contains(names::kLabelCapped)) {
    patch.remove_labels.emplace_back(names::kLabelCapped);
  }
  RequestNote note = request_on(context.node());
  if (by_bmc(context) && context.node().meta.annotations.contains(names::kRestore)) {
    patch.remove_annotations.emplace_back(names::kRestore);
  }
  // The BMC has the cap now: the agent's is not needed any more.
  if (by_bmc(context) && note.keys.erase(std::string(names::kPowerCap)) > 0) {
    patch.remove_annotations.emplace_back(names::kPowerCap);
    if (!note.keys.empty()) patch.set_annotations.set(names::kRequest, format_request(note));
  }
  // Nothing of ours is left: then the note has no purpose either.
  if (note.keys.empty() && context.node().meta.annotations.contains(names::kRequest)) {
    patch.remove_annotations.emplace_back(names::kRequest);
  }
  return patch;
}

std::string asked_text(const Context& context) {
  const api::AgentRequest& request = context.operation().request;
  std::string text;
  for (const auto& [key, value] : annotations_of(request)) {
    const std::size_t slash = key.find('/');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key.substr(slash + 1), value);
  }
  if (by_bmc(context)) text = text.empty() ? "the BMC's original limit" : text + " at the BMC";
  return text.empty() ? "original setting" : text;
}

Step annotate_step(const Context& context) {
  const std::set<std::string> wanted = [&] {
    std::set<std::string> keys;
    for (const auto& [key, value] : annotations_of(context.operation().request)) keys.insert(key);
    return keys;
  }();
  if (const auto key = set_by_hand(context.node(), wanted)) {
    return end_setting(context, Reason::Manual, fmt::format("{} was set by hand meanwhile", *key),
                       false);
  }
  const PatchNode patch = annotate_patch(context);
  if (!is_so(context.node(), patch)) return stay(context, kLook, {patch});
  return go(context, kWaitApplied);
}

Step wait_applied_step(const Context& context) {
  const api::AgentReport& report = context.status.report;
  const api::Operation& operation = context.operation();
  const bool answered = report.applied_request == operation.id;
  if (answered && report.converged) {
    if (is_cap(context) && context.status.bmc.original_known) return go(context, kSetLimit);
    const PatchNode patch = label_patch(context);
    if (patch.empty()) return go(context, kLabel);
    return go(context, kLabel, {patch});
  }
  if (context.in_step() < kAgentPatience) return stay(context, kLook);
  // Requested and not effective: the annotations stay, the labels do not claim anything.
  std::string why = "the agent has not applied the request";
  if (answered) {
    why = report.errors.empty() ? "the machine did not take the setting"
                                : "the agent reports: " + report.errors.front();
  }
  return end_setting(context, Reason::AgentStale,
                     fmt::format("{} asked for, not effective after {}: {}", asked_text(context),
                                 format_go_duration(kAgentPatience), why),
                     true);
}

Step label_step(const Context& context) {
  const PatchNode patch = label_patch(context);
  if (!is_so(context.node(), patch)) return stay(context, kLook, {patch});
  const Reason reason = api::parse_reason(context.operation().reason).value_or(Reason::InUse);
  return end_setting(context, reason, fmt::format("{} is effective", asked_text(context)), false);
}

}  // namespace

Step end_setting(const Context& context, Reason reason, std::string message, bool failed) {
  api::NodePowerStatus next = context.status;
  decide(next, api::Desired::None, reason, message, context.now());
  return finish(std::move(next), *context.seen.node, reason, std::move(message), failed);
}

Step settings_step(const Context& context) {
  const std::string& step = context.operation().step;
  // Label only writes down what is already so; before it, anyone may call the request off.
  if (step != kLabel) {
    if (auto why = called_off(context))
      return end_setting(context, why->reason, why->message, false);
  }
  if (step == kSetLimit || step == kWaitLimit) return limit_step(context);
  if (step == kWaitApplied) return wait_applied_step(context);
  if (step == kLabel) return label_step(context);
  if (context.spec.suspend) return stay(context, kLookSlowly);
  return annotate_step(context);
}

}  // namespace kwatt::planner::steps
