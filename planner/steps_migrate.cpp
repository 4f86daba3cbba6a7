// Migrate: Taint → Evict → WaitEmpty (of these pods) → Undo (the taint). The node stays in service;
// the taint only makes the scheduler prefer other nodes for the replacements.
#include <algorithm>

#include <fmt/format.h>

#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

PatchNode taint_patch() {
  PatchNode patch;
  patch.add_taints.push_back({std::string(names::kCandidateTaint), "", "PreferNoSchedule", {}});
  return patch;
}

Step end(const Context& context, Verdict why, bool failed) {
  Step step = go(context, kUndo);
  step.next.operation.reason = std::string(api::to_string(why.reason));
  if (failed) step.next.memory.cool_down_until = context.now() + kCoolDownAfterFailure;
  step.failed = failed;
  step.reason = why.reason;
  step.message = why.message;
  decide(step.next, api::Desired::None, why.reason, std::move(why.message), context.now());
  return step;
}

Duration settling(const Context& context) {
  const bool power = context.operation().reason == api::to_string(Reason::PowerHigh);
  return power ? context.spec.capping.window : context.spec.dvfs.window;
}

const api::PodMove* still_here(const Context& context) {
  for (const api::PodMove& move : context.operation().moves) {
    const auto& pods = context.seen.node->pods;
    const bool here = std::any_of(pods.begin(), pods.end(), [&](const auto& pod) {
      return pod->uid == move.uid && !pod->terminal();
    });
    if (here) return &move;
  }
  return nullptr;
}

Step timeout(const Context& context) {
  const api::PodMove* move = still_here(context);
  const std::string pod =
      move == nullptr ? std::string("a pod") : move->namespace_name + "/" + move->pod_name;
  return end(
      context,
      {Reason::DrainTimeout, fmt::format("pod {} was still there after {}", pod,
                                         format_go_duration(context.spec.migration.drain_timeout))},
      true);
}

Step undo_step(const Context& context) {
  PatchNode patch;
  if (has_taint(context.node(), names::kCandidateTaint)) {
    patch.remove_taints.emplace_back(names::kCandidateTaint);
  }
  if (!patch.empty()) return stay(context, kLook, {patch});
  const Reason reason = api::parse_reason(context.operation().reason).value_or(Reason::InProgress);
  return finish(context.status, *context.seen.node, reason, context.status.decision.message,
                reason == Reason::DrainTimeout);
}

}  // namespace

Step migrate_step(const Context& context) {
  const std::string& step = context.operation().step;
  if (step != kTaint && step != kEvict && step != kWaitEmpty) return undo_step(context);
  if (auto why = called_off(context)) return end(context, *why, false);
  if (still_here(context) == nullptr) {
    const auto reason = api::parse_reason(context.operation().reason).value_or(Reason::HighLoad);
    Step done =
        end(context,
            {reason, fmt::format("{} pods have left the node", context.operation().moves.size())},
            false);
    // Until the readings are all from after it, the levers wait.
    done.next.memory.cool_down_until = context.now() + settling(context);
    return done;
  }
  if (context.past_deadline()) return timeout(context);
  if (context.spec.suspend) return stay(context, kLookSlowly);
  if (step == kTaint) {
    const PatchNode patch = taint_patch();
    if (!is_so(context.node(), patch)) return stay(context, kLook, {patch});
    return go(context, kEvict);
  }
  if (step == kEvict) return evict_round(context, api::Desired::None);
  return stay(context, kLook);
}

}  // namespace kwatt::planner::steps
