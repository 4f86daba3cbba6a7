// A power limit at the machine's BMC: SetLimit → WaitLimit. The limit that was there before is
// recorded before the first write and forgotten only when it is read back as in force again, so
// that no crash loses it. What is asked for is committed before it is sent, and it counts only as
// far as it is read back.
#include <algorithm>

#include <fmt/format.h>

#include "base/backoff.hpp"
#include "planner/steps_common.hpp"

namespace kwatt::planner {

void take_in(const SeenLimit& seen, api::BmcStatus& bmc) {
  bmc.power_limit = true;
  bmc.effective_cap_watts = seen.watts;
  bmc.cap_min_watts = seen.lowest;
  bmc.cap_max_watts = seen.highest;
}

}  // namespace kwatt::planner

namespace kwatt::planner::steps {
namespace {

// The limit this operation is to bring about; 0: none.
struct Goal {
  std::int64_t watts = 0;
  bool ours = false;  // else: what was there before
};

Goal goal_of(const Context& context) {
  const api::Operation& operation = context.operation();
  if (operation.cap_by == api::CapBy::BMC && operation.request.power_cap_watts) {
    return {*operation.request.power_cap_watts, true};
  }
  return {context.status.bmc.original_cap_watts, false};
}

std::string text_of(std::int64_t watts) {
  return watts > 0 ? fmt::format("{} W", watts) : "none";
}

void forget_ours(api::BmcStatus& bmc) {
  bmc.requested_cap_watts = 0;
  bmc.original_known = false;
  bmc.original_cap_watts = 0;
}

void forget_failures(api::BmcStatus& bmc) {
  bmc.failure_count = 0;
  bmc.next_attempt.reset();
  bmc.error.clear();
}

void note_failure(api::BmcStatus& bmc, std::string error, TimePoint now) {
  bmc.failure_count += 1;
  const int failures = static_cast<int>(std::min<std::int64_t>(bmc.failure_count, 1000));
  bmc.next_attempt = now + exponential(kFirstBackoff, kLongestBackoff, failures);
  bmc.error = std::move(error);
}

// A BMC may round down, but what is higher than asked for is no cap.
bool in_force(const SeenLimit& seen, const Goal& goal) {
  if (!goal.ours) return seen.watts == goal.watts;
  return seen.watts > 0 && seen.watts <= goal.watts;
}

// The operation ends without its goal. If the limit is read to be what it was before, nothing of
// ours is there; else the record stays, and the next attempt goes on from it.
Step give_up(const Context& context, Reason reason, std::string why) {
  api::NodePowerStatus status = context.status;
  const auto& seen = context.seen.limit;
  if (seen) take_in(*seen, status.bmc);
  if (seen && status.bmc.original_known && seen->watts == status.bmc.original_cap_watts) {
    forget_ours(status.bmc);
  }
  const Goal goal = goal_of(context);
  std::string message =
      goal.ours ? fmt::format("a limit of {} W at the BMC is not in force: {}", goal.watts, why)
                : fmt::format("the BMC's limit of before ({}) is not in force again: {}",
                              text_of(goal.watts), why);
  note_failure(status.bmc, message, context.now());
  const Context ended{status, context.seen, context.spec};
  return end_setting(ended, reason, std::move(message), true);
}

std::string why_not(const Context& context, const std::string& otherwise) {
  return context.seen.bmc_error.empty() ? otherwise : context.seen.bmc_error;
}

// The first write: the limit of before must be known, and ours must make sense beside it.
Step first_write(const Context& context, const Goal& goal) {
  if (!context.seen.limit) {
    const bool refused = context.seen.bmc_refusal.has_value();
    if (refused || context.in_step() >= kLimitPatience) {
      return give_up(context, Reason::BMCError,
                     why_not(context, "the BMC does not tell its limit"));
    }
    const bool error = !context.seen.bmc_error.empty();
    return stay(context, error ? kLookSlowly : kLook, {ReadPowerLimit{}});
  }
  const SeenLimit& seen = *context.seen.limit;
  if (goal.watts < seen.lowest || (seen.highest > 0 && goal.watts > seen.highest)) {
    return give_up(context, Reason::OutOfRange,
                   fmt::format("the BMC takes {} to {} W", seen.lowest, seen.highest));
  }
  if (seen.watts > 0 && goal.watts >= seen.watts) {
    return give_up(context, Reason::OutOfRange,
                   fmt::format("somebody has set a limit of {} W there", seen.watts));
  }
  Step step = go(context, kWaitLimit, {SetPowerLimit{goal.watts}, ReadPowerLimit{}});
  take_in(seen, step.next.bmc);
  step.next.bmc.original_known = true;
  step.next.bmc.original_cap_watts = seen.watts;
  step.next.bmc.requested_cap_watts = goal.watts;
  return step;
}

Step set_limit_step(const Context& context) {
  const Goal goal = goal_of(context);
  if (!context.seen.node->has_driver) {
    return give_up(context, Reason::NoDriver, "the machine has no driver any more");
  }
  if (context.spec.suspend) return stay(context, kLookSlowly);
  if (!context.status.bmc.original_known) {
    // Nothing of ours is at the BMC: a release has nothing to do there.
    return goal.ours ? first_write(context, goal) : go(context, kLabel);
  }
  Step step = go(context, kWaitLimit, {SetPowerLimit{goal.watts}, ReadPowerLimit{}});
  if (goal.ours) step.next.bmc.requested_cap_watts = goal.watts;
  return step;
}

Step wait_limit_step(const Context& context) {
  const Goal goal = goal_of(context);
  const auto& seen = context.seen.limit;
  if (seen && in_force(*seen, goal)) {
    Step step = go(context, kLabel);
    take_in(*seen, step.next.bmc);
    forget_failures(step.next.bmc);
    if (!goal.ours) forget_ours(step.next.bmc);
    return step;
  }
  if (context.seen.bmc_refusal) {
    return give_up(context, *context.seen.bmc_refusal, context.seen.bmc_error);
  }
  if (context.in_step() >= kLimitPatience) {
    const std::string is = seen ? "it says " + text_of(seen->watts) : "it does not answer";
    return give_up(context, Reason::BMCError, why_not(context, is));
  }
  // After a crash nobody knows whether it was sent; sending it again does no harm.
  return stay(context, kLookSlowly, {SetPowerLimit{goal.watts}, ReadPowerLimit{}});
}

}  // namespace

Step limit_step(const Context& context) {
  return context.operation().step == kWaitLimit ? wait_limit_step(context)
                                                : set_limit_step(context);
}

std::optional<Step> restore_limit(const Context& context) {
  const api::BmcStatus& bmc = context.status.bmc;
  if (!bmc.original_known) return std::nullopt;
  const Goal goal{bmc.original_cap_watts, false};
  const auto& seen = context.seen.limit;
  if (seen && in_force(*seen, goal)) {
    Step step = stay(context, kLook);
    take_in(*seen, step.next.bmc);
    forget_failures(step.next.bmc);
    forget_ours(step.next.bmc);
    return step;
  }
  if (!context.seen.node->has_driver) {
    // There is no way to the BMC any more, and none will come: people have taken it away.
    Step step = stay(context, kLook);
    forget_failures(step.next.bmc);
    forget_ours(step.next.bmc);
    step.failed = true;
    step.reason = Reason::NoDriver;
    step.message = fmt::format(
        "no driver any more: a limit of {} W may still be set at the BMC, where {} was before",
        bmc.requested_cap_watts, text_of(bmc.original_cap_watts));
    return step;
  }
  if (context.seen.bmc_refusal || context.in_step() >= kLimitPatience) {
    const std::string is = seen ? "it says " + text_of(seen->watts) : "it does not answer";
    return give_up(context, context.seen.bmc_refusal.value_or(Reason::BMCError),
                   why_not(context, is));
  }
  return stay(context, kLookSlowly, {SetPowerLimit{goal.watts}, ReadPowerLimit{}});
}

}  // namespace kwatt::planner::steps
