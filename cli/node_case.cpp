#include "cli/node_case.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/state_words.hpp"
#include "cli/output.hpp"

namespace kwatt::cli {
namespace {

using planner::Override;

std::string operation_clause(const NodeCase& c) {
  const api::Operation& operation = c.status.operation;
  if (operation.id.empty()) return "";
  std::string text = fmt::format(": {} at step {}", phrase(operation.kind), operation.step);
  if (operation.step_started_at) text += fmt::format(" for {}", c.since(operation.step_started_at));
  return text;
}

// Clauses begin with what joins them to the text before; without anything to say they are empty.
std::string in_parentheses(const std::vector<std::string>& parts) {
  return parts.empty() ? std::string() : fmt::format(" ({})", fmt::join(parts, ", "));
}

std::string budgets_clause(const NodeCase& c) {
  std::vector<std::string> parts;
  if (!c.facts.policy) return "";
  for (const api::BudgetStatus& budget : c.facts.policy->status.budgets) {
    parts.push_back(fmt::format(
        "{}{} of {} used{}", budget.name.empty() ? "" : budget.name + ": ", budget.used,
        budget.allowed,
        budget.active_until ? " until " + format_rfc3339(*budget.active_until) : std::string()));
  }
  return in_parentheses(parts);
}

// ": 7 % of its CPUs were busy 4 min ago; below 30 % it is slowed down"
std::string load_clause(const NodeCase& c, std::vector<std::string> thresholds) {
  std::vector<std::string> parts;
  const api::AgentReport& report = c.status.report;
  if (report.time) {
    parts.push_back(fmt::format("{} % of its CPUs were busy {}", report.cpu_utilization_percent,
                                relative(*report.time, c.now)));
  }
  parts.insert(parts.end(), thresholds.begin(), thresholds.end());
  return parts.empty() ? std::string() : fmt::format(": {}", fmt::join(parts, "; "));
}

std::string low_clause(const NodeCase& c) {
  std::vector<std::string> thresholds;
  if (c.spec.migration.enabled) {
    thresholds.push_back(
        fmt::format("below {} % it is emptied", c.spec.migration.utilization_below_percent));
  }
  if (c.spec.dvfs.enabled) {
    thresholds.push_back(
        fmt::format("below {} % it is slowed down", c.spec.dvfs.low_utilization_percent));
  }
  if (c.spec.capping.enabled) {
    thresholds.push_back(fmt::format("below {} % of its maximum power its cap is released",
                                     c.spec.capping.release_percent_of_max));
  }
  return load_clause(c, std::move(thresholds));
}

std::string high_clause(const NodeCase& c) {
  std::vector<std::string> thresholds;
  if (c.spec.power_on.enabled) {
    thresholds.push_back(fmt::format("nodes are woken when those that are on are above {} % for {}",
                                     c.spec.power_on.high_utilization_percent,
                                     human(c.spec.power_on.high_for)));
  }
  if (c.spec.dvfs.enabled) {
    thresholds.push_back(
        fmt::format("above {} % it is sped up", c.spec.dvfs.high_utilization_percent));
  }
  if (c.spec.dvfs.enabled && c.spec.dvfs.migration.enabled) {
    thresholds.push_back(
        fmt::format("above {} % pods are moved away", c.spec.dvfs.migration.above_percent));
  }
  return load_clause(c, std::move(thresholds));
}

std::string cool_down_clause(const NodeCase& c) {
  const api::NodeMemory& memory = c.status.memory;
  std::optional<TimePoint> end;
  for (const auto& one : {memory.cool_down_until, memory.next_attempt}) {
    if (one && *one > c.now && (!end || *one > *end)) end = one;
  }
  return end ? "until " + format_rfc3339(*end) : "for a while";
}

std::string rates_clause(const NodeCase& c) {
  return fmt::format(" ({} off and {} on a minute, {} emptied at once)",
                     c.spec.power_off.max_per_minute, c.spec.power_on.max_per_minute,
                     c.spec.migration.max_nodes);
}

std::string costs_clause(const NodeCase& c) {
  std::vector<std::string> parts;
  const api::PowerModelSpec model =
      c.facts.machine ? c.facts.machine->spec.model : api::PowerModelSpec{};
  if (model.shutdown_seconds > 0) {
    parts.push_back(
        fmt::format("shutdown {}", human(std::chrono::seconds{model.shutdown_seconds})));
  }
  if (model.boot_seconds > 0) {
    parts.push_back(fmt::format("boot {}", human(std::chrono::seconds{model.boot_seconds})));
  }
  if (model.boot_joules > 0) parts.push_back(fmt::format("{} J", model.boot_joules));
  if (c.spec.migration.enabled) {
    parts.push_back(fmt::format("moving pods has to score {}", c.spec.migration.min_saving_score));
  }
  return in_parentheses(parts);
}

std::string range_clause(const NodeCase& c) {
  std::vector<std::string> parts;
  const api::AgentReport& report = c.status.report;
  if (report.hardware_max_mhz > 0) {
    parts.push_back(fmt::format("{} to {} MHz", report.hardware_min_mhz, report.hardware_max_mhz));
  }
  if (report.cap_max_watts > 0) {
    parts.push_back(fmt::format("caps of {} to {} W", report.cap_min_watts, report.cap_max_watts));
  }
  if (!report.available_governors.empty()) {
    parts.push_back(fmt::format("governors {}", fmt::join(report.available_governors, " ")));
  }
  return in_parentheses(parts);
}

std::string maximum_clause(const NodeCase& c) {
  if (!c.facts.machine) return "";
  const api::PowerModelSpec& model = c.facts.machine->spec.model;
  const std::int64_t most =
      model.curve_milliwatts.empty() ? model.max_milliwatts : model.curve_milliwatts.back();
  return most > 0 ? fmt::format(" of {} W", most / 1000) : std::string();
}

std::string share_clause(const NodeCase& c) {
  const std::int64_t budget = c.spec.capping.budget_watts;
  return budget > 0 ? fmt::format(", or than its share of the {} W of policy {}", budget,
                                  c.status.decision.policy)
                    : std::string();
}

std::string unready_clause(const NodeCase& c) {
  if (!c.facts.policy) return "";
  const api::NodeCounts& nodes = c.facts.policy->status.nodes;
  return fmt::format(" ({} of {})", nodes.unready, nodes.selected);
}

// What says that somebody else has the node: a cordon that is not ours, and taints.
std::string foreign_clause(const NodeCase& c) {
  std::vector<std::string> parts;
  if (!c.facts.node) return "";
  if (c.facts.node->unschedulable) parts.emplace_back("it is cordoned");
  for (const api::Taint& taint : c.facts.node->taints) {
    const bool usual = taint.key.starts_with("kwatt.dev/") ||
                       taint.key.starts_with("node.kubernetes.io/") ||
                       taint.key.starts_with("node-role.kubernetes.io/");
    if (!usual) parts.push_back("it has the taint " + taint.key);
  }
  return in_parentheses(parts);
}

std::string a_pod(const NodeCase& c) {
  if (c.pods == 0) return "a pod on it";
  return c.pods == 1 ? "the one workload pod on it"
                     : fmt::format("one of the {} workload pods on it", c.pods);
}

std::string pods_run(const NodeCase& c) {
  if (c.pods == 0) return "nothing asks for a change";
  return fmt::format("{} {} on it", count(c.pods, "workload pod"), c.pods == 1 ? "runs" : "run");
}

std::string pending_pods(const NodeCase& c) {
  if (!c.facts.pending || *c.facts.pending == 0) return "pods are";
  return count(*c.facts.pending, "pod") + (*c.facts.pending == 1 ? " is" : " are");
}

std::string driver_problem(const NodeCase& c) {
  const std::string address = c.facts.machine ? c.facts.machine->spec.bmc.address : "";
  return address.empty() ? "its NodePower names no way to switch it on"
                         : "the controller does not understand the address " + address +
                               ", or may not use it (--bmc-allow)";
}

std::string owner_of(const NodeCase& c) {
  const std::string& owner = c.status.memory.owner_policy;
  return owner.empty() || owner == c.status.decision.policy ? "another policy" : "policy " + owner;
}

}  // namespace

NodeCase::NodeCase(const NodeFacts& given, TimePoint at) : facts(given), now(at) {
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

std::string NodeCase::since(const std::optional<TimePoint>& when) const {
  return when ? human(now - *when) : "an unknown time";
}

std::string override_clause(const NodeCase& c) {
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

Values values_of(const NodeCase& c) {
  const api::NodeMemory& memory = c.status.memory;
  const api::PowerOffSpec& off = c.spec.power_off;
  const std::string& policy = c.status.decision.policy;
  const api::Condition* ready =
      c.facts.node ? api::find_condition(c.facts.node->conditions, "Ready") : nullptr;
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  return {
      {"node", c.facts.name},
      {"policy", policy.empty() ? "?" : policy},
      {"pods_run", pods_run(c)},
      {"a_pod", a_pod(c)},
      {"pending", pending_pods(c)},
      {"idle", c.since(memory.idle_since)},
      {"idle_for", human(off.idle_for)},
      {"low", low_clause(c)},
      {"high", high_clause(c)},
      {"on_for", c.since(memory.last_on)},
      {"off_for", c.since(memory.last_off)},
      {"min_on", human(off.min_on_duration)},
      {"min_off", human(off.min_off_duration)},
      {"min_awake", count(off.min_awake, "node")},
      {"min_awake_per_zone", number(off.min_awake_per_zone)},
      {"cycles", number(memory.cycles_today)},
      {"max_cycles", number(off.max_cycles_per_day)},
      {"headroom_cpu", number(c.spec.power_on.headroom.cpu_percent)},
      {"headroom_memory", number(c.spec.power_on.headroom.memory_percent)},
      {"boot_timeout", human(c.spec.power_on.boot_timeout)},
      {"drain_timeout", human(c.spec.migration.drain_timeout)},
      {"wake_test", std::string(to_string(off.wake_test))},
      {"watts", number(c.status.watts)},
      {"maximum", maximum_clause(c)},
      {"share", share_clause(c)},
      {"cap_above", number(c.spec.capping.above_percent_of_max)},
      {"cap_release", number(c.spec.capping.release_percent_of_max)},
      {"budget_watts", number(c.spec.capping.budget_watts)},
      {"policy_watts",
       c.facts.policy ? fmt::format(" (its nodes draw {} W)", c.facts.policy->status.power.watts)
                      : std::string()},
      {"budgets", budgets_clause(c)},
      {"cool_down", cool_down_clause(c)},
      {"rates", rates_clause(c)},
      {"costs", costs_clause(c)},
      {"range", range_clause(c)},
      {"unready", unready_clause(c)},
      {"foreign", foreign_clause(c)},
      {"owner", owner_of(c)},
      {"driver", driver_problem(c)},
      {"unselected", policy.empty() ? "no policy selects it"
                                    : "policy " + policy + " does not select it any more"},
      {"override", override_clause(c)},
      {"operation", operation_clause(c)},
      {"failures", memory.failure_count > 0 ? fmt::format(" ({} in a row failed)",
                                                          count(memory.failure_count, "attempt"))
                                            : std::string()},
      {"report_age", c.status.report.time ? fmt::format(" (its agent reported {})",
                                                        relative(*c.status.report.time, c.now))
                                          : " (its agent has never reported)"},
      {"not_ready", ready != nullptr && ready->status != "True" && ready->last_transition_time
                        ? fmt::format(", now for {}", c.since(ready->last_transition_time))
                        : std::string()},
  };
}

}  // namespace kwatt::cli
