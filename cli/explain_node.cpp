#include <algorithm>

#include <fmt/format.h>

#include "api/reason.hpp"
#include "api/state_words.hpp"
#include "cli/node_case.hpp"
#include "cli/output.hpp"
#include "cli/reasons.hpp"
#include "planner/plan.hpp"
#include "planner/propose.hpp"

namespace kwatt::cli {
namespace {

using api::PowerState;
using api::Reason;
using planner::Override;

// When a timer or window that stands in the way is over, as far as the typed fields say.
std::optional<TimePoint> earliest_of(const NodeCase& c, Reason reason) {
  const api::NodeMemory& memory = c.status.memory;
  std::optional<TimePoint> latest;
  const auto not_before = [&](std::optional<TimePoint> when, Duration more = Duration{0}) {
    if (when && *when + more > c.now && (!latest || *when + more > *latest)) latest = *when + more;
  };
  if (c.spec.suspend || c.spec.mode != api::Mode::Enforce || !c.facts.policy) return std::nullopt;
  if (!c.status.operation.id.empty()) return std::nullopt;
  switch (reason) {
    case Reason::Excluded:
    case Reason::ControlPlane:
    case Reason::NoDriver:
    case Reason::LeverDisabled:
    case Reason::ForeignOwner:
    case Reason::Conflict:
    case Reason::NotSelected:
      return std::nullopt;
    default:
      break;
  }
  not_before(memory.cool_down_until);
  not_before(memory.next_attempt);
  if (c.status.power_state == PowerState::Off || c.status.power_state == PowerState::WakeFailed) {
    not_before(memory.last_off, c.spec.power_off.min_off_duration);
    return latest;
  }
  if (!c.spec.power_off.enabled) return latest;
  not_before(memory.last_on, c.spec.power_off.min_on_duration);
  not_before(memory.idle_since.value_or(c.now), c.spec.power_off.idle_for);
  if (c.held.kind == Override::Kind::on) {
    if (!c.held.until) return std::nullopt;
    not_before(c.held.until);
  }
  if (memory.cycles_day == planner::day_of(c.now) &&
      memory.cycles_today >= c.spec.power_off.max_cycles_per_day) {
    not_before(std::chrono::ceil<std::chrono::days>(c.now + Duration{1}));
  }
  if (reason == Reason::Window || reason == Reason::BudgetExhausted) {
    std::optional<TimePoint> next;
    for (const api::BudgetStatus& budget : c.facts.policy->status.budgets) {
      if (budget.active_until && (!next || *budget.active_until < *next))
        next = budget.active_until;
    }
    not_before(next);
  }
  return latest;
}

void add_operation(const NodeCase& c, std::vector<std::string>& facts) {
  const api::Operation& operation = c.status.operation;
  if (operation.id.empty()) return;
  std::string text = fmt::format("A {} of policy {} ({}) is at step {}", phrase(operation.kind),
                                 operation.policy, operation.reason, operation.step);
  if (operation.started_at)
    text += fmt::format(", begun {}", relative(*operation.started_at, c.now));
  if (operation.deadline)
    text += fmt::format(", to be over {}", moment(*operation.deadline, c.now));
  facts.push_back(text);
  if (operation.moves.empty()) return;
  const auto leaving = static_cast<std::int64_t>(operation.moves.size());
  std::string moves =
      fmt::format("{} {} it: ", count(leaving, "pod"), leaving == 1 ? "leaves" : "leave");
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, operation.moves.size()); ++i) {
    const api::PodMove& move = operation.moves[i];
    moves += fmt::format("{}{}/{} to {}{}", i == 0 ? "" : ", ", move.namespace_name, move.pod_name,
                         move.node_name, move.phase.empty() ? "" : " (" + move.phase + ")");
  }
  if (operation.moves.size() > kShown) {
    moves += fmt::format(" and {} more", operation.moves.size() - kShown);
  }
  facts.push_back(moves);
}

void add_past(const NodeCase& c, std::vector<std::string>& facts) {
  const api::NodeMemory& memory = c.status.memory;
  std::string text;
  if (memory.last_off) text = "It was last switched off " + relative(*memory.last_off, c.now);
  if (memory.last_on) {
    text += (text.empty() ? "It was last woken " : " and last woken ") +
            relative(*memory.last_on, c.now);
  }
  if (memory.cycles_day == planner::day_of(c.now) && memory.cycles_today > 0) {
    text +=
        fmt::format("{}{} of at most {} power cycles today", text.empty() ? "It has had " : "; ",
                    memory.cycles_today, c.spec.power_off.max_cycles_per_day);
  }
  if (!text.empty()) facts.push_back(text);
  if (memory.idle_since && c.status.power_state == PowerState::On) {
    facts.push_back("It has been without workload pods for " + c.since(memory.idle_since));
  }
  if (memory.wake_verified_at) {
    facts.push_back("That it can be woken was proved " + relative(*memory.wake_verified_at, c.now));
  }
  if (memory.failure_count > 0) {
    std::string failures =
        fmt::format("{} in a row failed", count(memory.failure_count, "attempt"));
    if (memory.next_attempt) {
      failures +=
          fmt::format("; the next is tried from {} on", moment(*memory.next_attempt, c.now));
    }
    facts.push_back(failures);
  }
}

std::string how_known(const api::MachinePower& power) {
  switch (power.source) {
    case api::PowerBasis::Measured:
      return fmt::format(" (measured by {})", power.meter);
    case api::PowerBasis::Fitted:
      return fmt::format(" (estimated from what its meter said before it fell silent, error {} %)",
                         power.error_percent);
    case api::PowerBasis::Specified:
      return " (estimated by its own model)";
    case api::PowerBasis::Default:
      return " (estimated by the default model)";
    case api::PowerBasis::None:
      break;
  }
  return "";
}

void add_machine(const NodeCase& c, std::vector<std::string>& facts) {
  const api::AgentReport& report = c.status.report;
  std::string draw = fmt::format("It draws {} W", c.status.watts);
  draw += how_known(c.status.power);
  if (!report.governor.empty()) {
    draw += fmt::format("; governor {}, at most {} MHz", report.governor, report.max_mhz);
  }
  if (report.effective_cap_watts > 0) {
    draw += fmt::format(", capped at {} W", report.effective_cap_watts);
  }
  if (c.status.bmc.effective_cap_watts > 0) {
    draw += fmt::format(", limited by its BMC to {} W", c.status.bmc.effective_cap_watts);
  }
  facts.push_back(draw);
  for (const std::string& error : report.errors) facts.push_back("Its agent says: " + error);
  if (!c.status.bmc.error.empty()) facts.push_back("Its BMC: " + c.status.bmc.error);
}

void add_node(const NodeCase& c, std::vector<std::string>& facts) {
  if (!c.facts.node) {
    facts.push_back("There is no Node of this name, so nothing may be done to the machine");
    return;
  }
  const api::Condition* ready = api::find_condition(c.facts.node->conditions, "Ready");
  if (ready != nullptr && ready->status != "True") {
    facts.push_back(
        fmt::format("Its Node is not Ready{}", ready->last_transition_time
                                                   ? " for " + c.since(ready->last_transition_time)
                                                   : std::string()));
  }
  if (c.facts.node->unschedulable) {
    const bool ours = c.status.operation.cordoned_by_us || c.status.memory.cordoned_by_us;
    facts.push_back(ours ? "It is cordoned by kwatt" : "It is cordoned, and not by kwatt");
  }
  if (c.held.kind != Override::Kind::none) facts.push_back("A person asks" + override_clause(c));
}

void add_policy(const NodeCase& c, std::vector<std::string>& facts) {
  if (!c.facts.policy) {
    if (!c.status.decision.policy.empty()) {
      facts.push_back(fmt::format("Policy {} is gone", c.status.decision.policy));
    }
    return;
  }
  const auto& conditions = c.facts.policy->status.conditions;
  const auto tell = [&](std::string_view type, std::string_view odd) {
    const api::Condition* condition = api::find_condition(conditions, type);
    if (condition == nullptr || condition->status != odd) return;
    facts.push_back(fmt::format("Policy {} is {}{}: {} ({})", c.facts.policy->meta.name,
                                odd == "False" ? "not " : "", type, condition->reason,
                                condition->message));
  };
  tell("Accepted", "False");
  tell("Ready", "False");
  tell("Enforcing", "False");
  tell("Halted", "True");
}

}  // namespace

Explanation explain_node(const NodeFacts& facts, TimePoint now) {
  const NodeCase c(facts, now);
  const api::NodeDecision& decision = c.status.decision;
  Explanation out;
  out.kind = "node";
  out.name = facts.name;
  out.events = event_lines(facts.events);
  if (!facts.machine) {
    out.state = to_string(PowerState::Unknown);
    out.sentence = fmt::format(
        "node {} is left alone because no policy selects it and no agent reports from it",
        facts.name);
    out.change = "It is taken up when an EnergyPolicy selects it";
    add_node(c, out.facts);
    return out;
  }
  out.state = to_string(c.status.power_state);
  out.reason = decision.reason;
  out.policy = decision.policy;
  out.message = decision.message;
  const std::string subject =
      fmt::format("node {} is {}", facts.name, phrase(c.status.power_state));
  const auto reason = api::parse_reason(decision.reason);
  if (decision.reason.empty()) {
    out.sentence = subject + "; no decision about it has been made yet";
    out.change = "It is considered with the next pass of a policy that selects it";
  } else if (!reason) {
    out.sentence = fmt::format("{}; its reason {} is not known to this version of kubectl-kwatt",
                               subject, decision.reason);
  } else {
    const ReasonText& text = text_of(*reason);
    const Values values = values_of(c);
    out.sentence =
        fmt::format("{} because {} ({})", subject, fill(text.because, values), decision.reason);
    if (decision.since) out.sentence += fmt::format(", for {}", c.since(decision.since));
    out.change = fill(text.change, values);
    out.earliest = earliest_of(c, *reason);
  }
  add_operation(c, out.facts);
  add_past(c, out.facts);
  add_machine(c, out.facts);
  add_node(c, out.facts);
  add_policy(c, out.facts);
  return out;
}

}  // namespace kwatt::cli
