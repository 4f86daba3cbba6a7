// PowerOn: Wake → WaitLease → WaitReady → Uncordon. Our taints go before the node is Ready: CNI and
// other DaemonSets must be able to start for it to become so; the cordon goes last.
#include <algorithm>

#include <fmt/format.h>

#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

bool answered_on(const Context& context) {
  const auto& machine = context.seen.machine;
  return machine && (*machine == api::PowerState::On || *machine == api::PowerState::PoweringOn);
}

// The machine stays marked as ours to wake, and is left alone until the backoff is over, so that
// another one is chosen meanwhile.
Step wake_failed(const Context& context, std::string message) {
  api::NodePowerStatus next = context.status;
  next.power_state = api::PowerState::WakeFailed;
  back_off(next.memory, context.now());
  // What was known of it is not true any more: it has to pass a wake test again.
  next.memory.wake_verified_at.reset();
  decide(next, api::Desired::On, Reason::WakeFailed, message, context.now());
  return finish(std::move(next), *context.seen.node, Reason::WakeFailed, std::move(message), true);
}

std::string timeout_message(const Context& context) {
  const std::string waited = format_go_duration(context.in_operation());
  if (!context.seen.bmc_error.empty()) {
    return fmt::format("not awake after {}: {}", waited, context.seen.bmc_error);
  }
  if (context.operation().step == kWake) {
    return fmt::format("the machine has not come on within {}", waited);
  }
  if (context.operation().step == kWaitLease) {
    return fmt::format("the machine is on, but its kubelet has not reported within {}", waited);
  }
  return fmt::format("the node has not become Ready within {}", waited);
}

Step wake_step(const Context& context) {
  if (answered_on(context)) return go(context, kWaitLease, {}, "the machine is on");
  // A controller that refuses for so long will not do it now; the pods wait for another machine.
  if (!context.seen.bmc_error.empty() && context.in_step() >= kBmcPatience) {
    return wake_failed(context, timeout_message(context));
  }
  std::vector<Effect> effects;
  if (!context.seen.reset_sent) {
    effects.push_back(ResetMachine{ResetMachine::Kind::on});
  } else if (context.in_step() >= kHardOffPatience) {
    // Accepted, and still off: the command may have met the end of a shutdown. On is idempotent.
    effects.push_back(ResetMachine{ResetMachine::Kind::on});
  }
  effects.push_back(ReadMachine{});
  const bool error = !context.seen.bmc_error.empty();
  return stay(context, error ? kLookSlowly : kLook, std::move(effects));
}

// Is there proof that this boot's kubelet runs? Ready alone may be left over from before.
bool kubelet_reports(const Context& context) {
  if (context.seen.lease_renewed_since_start) return true;
  if (!context.seen.node->ready) return false;
  const auto since = context.operation().step_started_at;
  const api::Condition* ready = api::find_condition(context.node().conditions, "Ready");
  if (since && ready != nullptr && ready->last_transition_time &&
      *ready->last_transition_time >= *since) {
    return true;
  }
  // Of the agent: a BMC or an exporter speaks for a machine that is off or boots as well.
  const auto& samples = context.seen.node->samples;
  const bool spoke = since && std::any_of(samples.rbegin(), samples.rend(), [&](const auto& s) {
                       return s.from_agent && s.at > *since;
                     });
  if (spoke) return true;
  return context.in_step() >= kReadyIsCurrent;
}

Step wait_lease_step(const Context& context) {
  if (!kubelet_reports(context)) return stay(context, kLook);
  return go(context, kWaitReady, {clean_patch(context, false)});
}

Step wait_ready_step(const Context& context) {
  const PatchNode patch = clean_patch(context, false);
  if (!patch.empty()) return stay(context, kLook, {patch});
  if (!context.seen.node->ready) return stay(context, kLook);
  const bool ours = context.operation().cordoned_by_us || context.status.memory.cordoned_by_us;
  PatchNode uncordon;
  if (ours) uncordon.unschedulable = false;
  return go(context, kUncordon, {uncordon});
}

Step uncordon_step(const Context& context) {
  const bool ours = context.operation().cordoned_by_us || context.status.memory.cordoned_by_us;
  if (ours && context.node().unschedulable) {
    PatchNode patch;
    patch.unschedulable = false;
    return stay(context, kLook, {patch});
  }
  const TimePoint now = context.now();
  const bool test = context.operation().then_wake;
  api::NodePowerStatus next = context.status;
  next.power_state = api::PowerState::On;
  api::NodeMemory& memory = next.memory;
  memory.last_on = now;
  // One that was found running has been switched on by somebody else: that proves nothing.
  const bool woken = context.status.power_state == api::PowerState::PoweringOn;
  if (woken) memory.wake_verified_at = now;
  memory.idle_since.reset();
  memory.next_attempt.reset();
  memory.failure_count = 0;
  memory.powered_off_by_us = false;
  memory.cordoned_by_us = false;
  // After a test nothing waits for this machine: no need to let it settle.
  if (!test) memory.cool_down_until = now + kCoolDownAfterWake;
  const Reason reason = api::parse_reason(context.operation().reason).value_or(Reason::PendingPods);
  const std::string took = format_go_duration(context.in_operation());
  return finish(std::move(next), *context.seen.node, reason,
                test ? fmt::format("wake test passed in {}", took)
                     : fmt::format("the node is Ready again after {}", took));
}

}  // namespace

Step power_on_step(const Context& context) {
  const std::string& step = context.operation().step;
  if (step == kUncordon && context.seen.node->ready) return uncordon_step(context);
  if (context.past_deadline()) return wake_failed(context, timeout_message(context));
  if (step == kWaitLease) return wait_lease_step(context);
  if (step == kWaitReady || step == kUncordon) return wait_ready_step(context);
  // Wake, and any name we do not know: waking again does no harm.
  return wake_step(context);
}

}  // namespace kwatt::planner::steps
