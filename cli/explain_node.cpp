#include <algorithm>

#include <fmt/format.h>

#include "api/reason.hpp"
#include "cli/explain.hpp"
#include "cli/output.hpp"
#include "cli/reasons.hpp"
#include "cli/words.hpp"
#include "planner/destinations.hpp"
#include "planner/plan.hpp"
#include "planner/propose.hpp"

namespace kwatt::cli {
namespace {

using api::PowerState;
using api::Reason;
using planner::Override;

// The objects of one node with their absences filled in, so that each sentence can just look.
struct Case {
  const NodeFacts& facts;
  TimePoint now;
  api::NodePowerStatus status{};
  api::EnergyPolicySpec spec{};
  Override held{};
  std::int64_t pods = 0;

  Case(const NodeFacts& given, TimePoint at) : facts(given), now(at) {
    if (facts.machine) status = facts.machine->status;
    if (facts.policy) spec = facts.policy->spec;
    if (facts.node) {
      planner::NodeView view;
      view.node = std::make_shared<const api::Node>(*facts.node);
      held = planner::override_of(view, now);
    }
    pods = std::count_if(facts.pods.begin(), facts.pods.end(),
                         [](const api::Pod& pod) { return pod.workload(); });
  }
  std::string since(const std::optional<TimePoint>& when) const {
    return when ? human(now - *when) : "an unknown time";
  }
};

std::string operation_clause(const Case& c) {
  const api::Operation& operation = c.status.operation;
  if (operation.id.empty()) return "";
  std::string text = fmt::format(": {} at step {}", phrase(operation.kind), operation.step);
  if (operation.step_started_at) text += fmt::format(" for {}", c.since(operation.step_started_at));
  return text;
}

std::string budgets_clause(const Case& c) {
  if (!c.facts.policy) return "";
  std::string text;
  for (const api::BudgetStatus& budget : c.facts.policy->status.budgets) {
    text += text.empty() ? " (" : ", ";
    text += fmt::format("{}{} of {} used", budget.name.empty() ? "" : budget.name + ": ",
                        budget.used, budget.allowed);
  }
  return text.empty() ? text : text + ")";
}

std::string override_clause(const Case& c) {
  switch (c.held.kind) {
    case Override::Kind::on:
      return c.held.until ? fmt::format(": held on until {}", moment(*c.held.until, c.now))
                          : ": held on until it is released";
    case Override::Kind::off:
      return c.held.until ? fmt::format(": held off until {}", moment(*c.held.until, c.now))
                          : ": held off until it is released";
    case Override::Kind::not_understood:
      return ": the annotation kwatt.dev/override is not understood, so it is held on";
    case Override::Kind::none:
      break;
  }
  return "";
}

Values values_of(const Case& c) {
  const api::NodeMemory& memory = c.status.memory;
  const api::PowerOffSpec& off = c.spec.power_off;
  const api::Condition* ready =
      c.facts.node ? api::find_condition(c.facts.node->conditions, "Ready") : nullptr;
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  return {
      {"node", c.facts.name},
      {"policy", c.status.decision.policy.empty() ? "?" : c.status.decision.policy},
      {"pods_run", c.pods == 0 ? "nothing asks for a change"
                               : fmt::format("{} {} on it", count(c.pods, "workload pod"),
                                             c.pods == 1 ? "runs" : "run")},
      {"idle", c.since(memory.idle_since)},
      {"idle_for", human(off.idle_for)},
      {"on_for", c.since(memory.last_on)},
      {"off_for", c.since(memory.last_off)},
      {"min_on", human(off.min_on_duration)},
      {"min_off", human(off.min_off_duration)},
      {"min_awake", count(off.min_awake, "node")},
      {"min_awake_per_zone", number(off.min_awake_per_zone)},
      {"cycles", number(memory.cycles_today)},
      {"max_cycles", number(off.max_cycles_per_day)},
      {"high_for", human(c.spec.power_on.high_for)},
      {"headroom_cpu", number(c.spec.power_on.headroom.cpu_percent)},
      {"headroom_memory", number(c.spec.power_on.headroom.memory_percent)},
      {"boot_timeout", human(c.spec.power_on.boot_timeout)},
      {"drain_timeout", human(c.spec.migration.drain_timeout)},
      {"watts", number(c.status.watts)},
      {"cap_above", number(c.spec.capping.above_percent_of_max)},
      {"cap_release", number(c.spec.capping.release_percent_of_max)},
      {"budget_watts", number(c.spec.capping.budget_watts)},
      {"budgets", budgets_clause(c)},
      {"override", override_clause(c)},
      {"operation", operation_clause(c)},
      {"failures", memory.failure_count > 0 ? fmt::format(" ({} in a row failed)",
                                                          count(memory.failure_count, "attempt"))
                                            : std::string()},
      {"report_age", c.status.report.time ? fmt::format(" (its agent reported {})",
                                                        relative(*c.status.report.time, c.now))
                                          : " (its agent has never reported)"},
      {"not_ready", ready != nullptr && ready->status != "True" && ready->last_transition_time
                        ? fmt::format(" since {}", c.since(ready->last_transition_time) + " ago")
                        : std::string()},
      {"cordon", c.facts.node && c.facts.node->unschedulable ? " (it is cordoned)" : std::string()},
  };
}

// When a timer or window that stands in the way is over, as far as the typed fields say.
std::optional<TimePoint> earliest_of(const Case& c, Reason reason) {
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

void add_operation(const Case& c, std::vector<std::string>& facts) {
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

void add_past(const Case& c, std::vector<std::string>& facts) {
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

void add_machine(const Case& c, std::vector<std::string>& facts) {
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

void add_node(const Case& c, std::vector<std::string>& facts) {
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

void add_policy(const Case& c, std::vector<std::string>& facts) {
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
  const Case c(facts, now);
  const api::NodeDecision& decision = c.status.decision;
  Explanation out;
  out.kind = "node";
  out.name = facts.name;
  out.events = event_lines(facts.events);
  if (!facts.machine) {
    out.state = word(PowerState::Unknown);
    out.sentence = fmt::format(
        "node {} is left alone because no policy selects it and no agent reports from it",
        facts.name);
    out.change = "It is taken up when an EnergyPolicy selects it";
    add_node(c, out.facts);
    return out;
  }
  out.state = word(c.status.power_state);
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
