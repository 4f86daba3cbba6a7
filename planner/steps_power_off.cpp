// PowerOff: Cordon → Evict → WaitEmpty → Evacuate → SoftOff → HardOff → Verify, with Undo from
// everywhere before SoftOff. Nothing moves on before what was asked for is seen.
#include <fmt/format.h>

#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

using Kind = ResetMachine::Kind;

api::Taint candidate_taint() {
  return {std::string(names::kCandidateTaint), "", "PreferNoSchedule", {}};
}
api::Taint power_off_taint() {
  return {std::string(names::kPowerOffTaint), "", "NoExecute", {}};
}

enum class After { nothing, failure, bmc_failure };

// Commits that we give up, and why; Undo then takes our marks off the node.
Step undo(const Context& context, Verdict why, After after) {
  Step step = go(context, kUndo);
  api::NodePowerStatus& next = step.next;
  next.operation.reason = std::string(api::to_string(why.reason));
  next.operation.then_wake = false;
  next.memory.powered_off_by_us = false;
  if (after == After::failure) next.memory.cool_down_until = context.now() + kCoolDownAfterFailure;
  if (after == After::bmc_failure) back_off(next.memory, context.now());
  step.failed = after != After::nothing;
  step.reason = why.reason;
  step.message = why.message;
  decide(next, api::Desired::None, why.reason, std::move(why.message), context.now());
  return step;
}

Step undo_step(const Context& context) {
  const PatchNode patch = clean_patch(context, context.operation().cordoned_by_us);
  if (!patch.empty()) return stay(context, kLook, {patch});
  api::NodePowerStatus next = context.status;
  next.power_state = api::PowerState::On;
  next.memory.cordoned_by_us = false;
  const Reason reason = api::parse_reason(context.operation().reason).value_or(Reason::InProgress);
  Step step = finish(std::move(next), *context.seen.node, reason,
                     "the node is in service again: " + context.status.decision.message);
  step.failed = reason == Reason::DrainTimeout || reason == Reason::BMCError;
  return step;
}

// Somebody took the cordon away: whoever it was wants the node.
bool cordon_lost(const Context& context) {
  return context.operation().cordoned_by_us && !context.node().unschedulable;
}

// A pod that is neither leaving nor one of ours to evict. Pods bound before the cordon was seen by
// the scheduler, or bound past it.
const api::Pod* newcomer(const Context& context) {
  for (const auto& pod : context.seen.node->pods) {
    if (!pod->workload() || pod->deletion_timestamp) continue;
    bool known = false;
    for (const api::PodMove& move : context.operation().moves) known |= move.uid == pod->uid;
    if (!known) return pod.get();
  }
  return nullptr;
}

// What ends every step before the machine is touched.
std::optional<Step> interrupted(const Context& context) {
  if (auto why = called_off(context)) return undo(context, *why, After::nothing);
  if (const api::Pod* pod = newcomer(context)) {
    return undo(context, {Reason::InUse, fmt::format("pod {} was bound to the node", pod->key())},
                After::nothing);
  }
  return std::nullopt;
}

Step cordon_step(const Context& context) {
  if (auto stop = interrupted(context)) return *stop;
  const api::Node& node = context.node();
  const bool ours = has_taint(node, names::kCandidateTaint) || context.status.memory.cordoned_by_us;
  if (node.unschedulable && !ours) {
    Step step = undo(context, {Reason::ForeignOwner, "somebody else has cordoned the node"},
                     After::nothing);
    step.next.operation.cordoned_by_us = false;
    return step;
  }
  // Taint and cordon go in one patch: a cordon next to our taint is ours, even after a crash.
  PatchNode patch;
  patch.add_taints.push_back(candidate_taint());
  if (context.operation().cordoned_by_us) patch.unschedulable = true;
  if (!is_so(node, patch)) {
    if (!context.spec.suspend) return stay(context, kLook, {patch});
    return stay(context, kLookSlowly);
  }
  Step step = go(context, kEvict);
  step.next.memory.cordoned_by_us = context.operation().cordoned_by_us;
  return step;
}

Step drain_timeout(const Context& context) {
  std::string message;
  if (const api::Pod* pod = workload_pod(*context.seen.node, true)) {
    message = fmt::format("pod {} was still there after {}", pod->key(),
                          format_go_duration(context.spec.migration.drain_timeout));
    if (context.status.decision.reason == api::to_string(Reason::PDBBlocked)) {
      message += ": " + context.status.decision.message;
    }
  } else {
    message = fmt::format("a volume was still attached after {}",
                          format_go_duration(context.spec.migration.drain_timeout));
  }
  return undo(context, {Reason::DrainTimeout, std::move(message)}, After::failure);
}

Step evict_step(const Context& context) {
  if (auto stop = interrupted(context)) return *stop;
  if (cordon_lost(context)) {
    return undo(context, {Reason::Manual, "somebody uncordoned the node"}, After::nothing);
  }
  if (context.past_deadline()) return drain_timeout(context);
  if (context.spec.suspend) return stay(context, kLookSlowly);
  return evict_round(context, api::Desired::Off);
}

Step wait_empty_step(const Context& context) {
  if (auto stop = interrupted(context)) return *stop;
  if (cordon_lost(context)) {
    return undo(context, {Reason::Manual, "somebody uncordoned the node"}, After::nothing);
  }
  if (workload_pod(*context.seen.node, true) == nullptr && !context.seen.node->volume_attached) {
    if (context.spec.suspend) return stay(context, kLookSlowly);
    PatchNode patch;
    patch.add_taints.push_back(power_off_taint());
    return go(context, kEvacuate, {patch});
  }
  if (context.past_deadline()) return drain_timeout(context);
  return stay(context, kLook);
}

// DaemonSet pods that do not tolerate our taint and are still there: they get their grace period.
bool daemons_ending(const Context& context) {
  const api::Taint taint = power_off_taint();
  for (const auto& pod : context.seen.node->pods) {
    if (!pod->daemon() || pod->terminal()) continue;
    if (!api::tolerates(pod->spec->tolerations, taint)) return true;
  }
  return false;
}

Step evacuate_step(const Context& context) {
  if (auto stop = interrupted(context)) return *stop;
  if (cordon_lost(context)) {
    return undo(context, {Reason::Manual, "somebody uncordoned the node"}, After::nothing);
  }
  if (workload_pod(*context.seen.node, true) != nullptr || context.seen.node->volume_attached) {
    return go(context, kWaitEmpty);
  }
  if (context.spec.suspend) return stay(context, kLookSlowly);
  PatchNode patch;
  patch.add_taints.push_back(power_off_taint());
  if (!is_so(context.node(), patch)) return stay(context, kLook, {patch});
  if (daemons_ending(context) && context.in_step() < kDaemonGrace) return stay(context, kLook);
  // The BMC must answer before anything is sent: a machine we cannot verify is left on.
  if (!context.seen.machine || *context.seen.machine == api::PowerState::Unknown) {
    if (!context.seen.bmc_error.empty()) {
      return undo(context, {Reason::BMCError, context.seen.bmc_error}, After::bmc_failure);
    }
    if (context.in_step() >= kDaemonGrace + kBmcPatience) {
      return undo(context, {Reason::BMCError, "the machine's controller tells no power state"},
                  After::bmc_failure);
    }
    return stay(context, kLook, {ReadMachine{}});
  }
  if (*context.seen.machine == api::PowerState::Off && context.seen.node->ready) {
    return undo(context,
                {Reason::BMCError,
                 "the machine's controller says Off while its node reports: it is not believed"},
                After::bmc_failure);
  }
  Step step = go(context, kSoftOff, {ResetMachine{Kind::graceful_shutdown}, ReadMachine{}});
  step.next.power_state = api::PowerState::PoweringOff;
  // Recorded before it can be true, so that no crash leaves a machine off that nobody wakes.
  step.next.memory.powered_off_by_us = true;
  return step;
}

Step verified_off(const Context& context) {
  Step step = go(context, kVerify);
  step.next.power_state = api::PowerState::Off;
  step.next.memory.last_off = context.now();
  step.next.memory.idle_since.reset();
  count_cycle(step.next.memory, context.now());
  return step;
}

// A pod came although the node is cordoned and tainted, and the machine may be going down. Nothing
// more is sent: either the shutdown was accepted, then the machine is woken again, or it was not.
Step occupied(const Context& context, const api::Pod& pod) {
  if (context.in_step() >= context.spec.power_off.soft_timeout && context.seen.machine &&
      *context.seen.machine == api::PowerState::On) {
    return undo(context, {Reason::InUse, fmt::format("pod {} was bound to the node", pod.key())},
                After::nothing);
  }
  return stay(context, kLook, {ReadMachine{}});
}

Step soft_off_step(const Context& context) {
  if (context.seen.machine && *context.seen.machine == api::PowerState::Off) {
    return verified_off(context);
  }
  if (const api::Pod* pod = workload_pod(*context.seen.node, true)) return occupied(context, *pod);
  // A machine without graceful shutdown refuses it for good: waiting would be in vain.
  const bool refused = context.seen.bmc_refusal && !context.seen.reset_sent;
  if (refused || context.in_step() >= context.spec.power_off.soft_timeout) {
    return go(context, kHardOff, {ResetMachine{Kind::force_off}, ReadMachine{}});
  }
  std::vector<Effect> effects;
  if (!context.seen.reset_sent) effects.push_back(ResetMachine{Kind::graceful_shutdown});
  effects.push_back(ReadMachine{});
  const bool error = !context.seen.bmc_error.empty();
  return stay(context, error ? kLookSlowly : kLook, std::move(effects));
}

Step hard_off_step(const Context& context) {
  if (context.seen.machine && *context.seen.machine == api::PowerState::Off) {
    return verified_off(context);
  }
  if (const api::Pod* pod = workload_pod(*context.seen.node, true)) return occupied(context, *pod);
  // A kubelet that still reports long after the command proves that the machine never went off.
  const bool patience_over = context.in_step() >= kHardOffPatience;
  if (patience_over && context.seen.node->ready) {
    const std::string message = context.seen.bmc_error.empty()
                                    ? "the machine does not go off although its controller accepts"
                                    : context.seen.bmc_error;
    return undo(context, {Reason::BMCError, message}, After::bmc_failure);
  }
  std::vector<Effect> effects;
  // Repeating a forced off does no harm, and one that got lost must be repeated.
  if (!context.seen.reset_sent || patience_over) effects.push_back(ResetMachine{Kind::force_off});
  effects.push_back(ReadMachine{});
  return stay(context, patience_over ? 6 * kLookSlowly : kLook, std::move(effects));
}

// The same operation goes on as a PowerOn.
Step wake(const Context& context, std::string message) {
  Step step = go(context, kWake, {ResetMachine{Kind::on}, ReadMachine{}}, std::move(message));
  step.next.operation.kind = api::OperationKind::PowerOn;
  step.next.operation.deadline = context.now() + context.spec.power_on.boot_timeout;
  step.next.operation.moves.clear();
  step.next.power_state = api::PowerState::PoweringOn;
  return step;
}

Step verify_step(const Context& context) {
  PatchNode patch;
  patch.set_labels.set(names::kLabelPower, "off");
  patch.suspended_condition = true;
  if (!is_so(context.node(), patch) && context.in_step() < kVerifyPatience) {
    return stay(context, kLook, {patch});
  }
  const bool needed = workload_pod(*context.seen.node, true) != nullptr;
  if (context.operation().then_wake || needed) {
    return wake(context, needed ? "a pod was bound while the machine went off: waking it"
                                : "off as asked: waking it again to prove that it can be");
  }
  api::NodePowerStatus next = context.status;
  next.memory.failure_count = 0;
  next.memory.next_attempt.reset();
  const Reason reason = api::parse_reason(context.operation().reason).value_or(Reason::Idle);
  return finish(std::move(next), *context.seen.node, reason, "the machine is off");
}

}  // namespace

Step power_off_step(const Context& context) {
  const std::string& step = context.operation().step;
  if (step == kCordon) return cordon_step(context);
  if (step == kEvict) return evict_step(context);
  if (step == kWaitEmpty) return wait_empty_step(context);
  if (step == kEvacuate) return evacuate_step(context);
  if (step == kSoftOff) return soft_off_step(context);
  if (step == kHardOff) return hard_off_step(context);
  if (step == kVerify) return verify_step(context);
  if (step == kUndo) return undo_step(context);
  // A record of another version: whatever it had reached, an awake machine is the safe end.
  return wake(context, fmt::format("step {} is not known here: waking the machine", step));
}

}  // namespace kwatt::planner::steps
