#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/state_words.hpp"
#include "cli/explain.hpp"
#include "cli/output.hpp"

namespace kwatt::cli {
namespace {

// Conditions that are as they should be say nothing.
bool usual(const api::Condition& condition) {
  if (condition.type == "Halted" || condition.type == "Conflict")
    return condition.status == "False";
  // Who asked for it wants to know what it is.
  if (condition.type == "CarbonDataAvailable") {
    return condition.reason == "NotAsked" || condition.reason == "NotAccepted";
  }
  return condition.status == "True";
}

void add_lists(const api::EnergyPolicyStatus& status, std::vector<std::string>& facts) {
  const auto tell = [&](std::string_view what, const std::vector<std::string>& names,
                        std::int64_t total) {
    if (names.empty()) return;
    std::string text = fmt::format("{}: ", what);
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
      text += (i == 0 ? "" : ", ") + names[i];
    }
    const auto shown = static_cast<std::int64_t>(std::min(kShown, names.size()));
    if (total > shown) text += fmt::format(" and {} more", total - shown);
    facts.push_back(text);
  };
  tell("Switched on by the last pass, or being switched on", status.power_on,
       status.power_on_total);
  tell("Switched off by the last pass, or being switched off", status.power_off,
       status.power_off_total);
  if (status.migrations_total > 0) {
    facts.push_back(count(status.migrations_total, "move") + " of pods planned or under way");
  }
}

}  // namespace

std::string reason_counts(const std::vector<const api::NodePower*>& machines) {
  std::map<std::string, std::int64_t> by_reason;
  for (const api::NodePower* machine : machines) ++by_reason[machine->status.decision.reason];
  std::vector<std::pair<std::string, std::int64_t>> sorted(by_reason.begin(), by_reason.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [reason, number] : sorted) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", number, reason.empty() ? "undecided" : reason);
  }
  return text;
}

Explanation explain_policy(const PolicyFacts& facts, TimePoint now) {
  const api::EnergyPolicy& policy = facts.policy;
  const api::EnergyPolicyStatus& status = policy.status;
  Explanation out;
  out.kind = "policy";
  out.name = policy.meta.name;
  out.policy = policy.meta.name;
  out.state = to_string(policy.spec.mode);
  out.events = event_lines(facts.events);

  const std::string what = policy.meta.deletion_timestamp ? "is being deleted"
                           : policy.spec.suspend          ? "is suspended"
                           : policy.spec.mode == api::Mode::Enforce
                               ? "is enforced"
                               : "only recommends (mode Recommend)";
  if (!status.last_pass.time) {
    out.sentence = fmt::format("policy {} {}; no controller has looked at it yet", out.name, what);
    out.change = "It takes effect as soon as kwatt-controller runs and leads";
    return out;
  }
  out.sentence = fmt::format("policy {} {} and has {}: {} on, {} off, {} changing", out.name, what,
                             count(status.nodes.selected, "node"), status.nodes.on,
                             status.nodes.off, status.nodes.transitioning);
  std::vector<const api::NodePower*> own;
  for (const api::NodePower& machine : facts.machines) {
    if (machine.status.decision.policy == out.name) own.push_back(&machine);
  }
  if (!own.empty()) out.facts.push_back("Its nodes by reason: " + reason_counts(own));
  out.facts.push_back(fmt::format(
      "They draw {} W; without kwatt it would be {} W; {} saved so far", status.power.watts,
      (status.power.baseline_milliwatts + 500) / 1000, energy(status.power.saved_watt_hours)));
  add_lists(status, out.facts);
  for (const api::BudgetStatus& budget : status.budgets) {
    std::string text =
        fmt::format("Disruption budget{}: {} of {} used",
                    budget.name.empty() ? "" : " " + budget.name, budget.used, budget.allowed);
    if (budget.active_until) text += ", until " + moment(*budget.active_until, now);
    out.facts.push_back(text);
  }
  for (const api::Condition& condition : status.conditions) {
    if (usual(condition)) continue;
    out.facts.push_back(fmt::format("{} is {} ({}): {}", condition.type, condition.status,
                                    condition.reason, condition.message));
  }
  if (policy.meta.generation != status.observed_generation) {
    out.facts.push_back("Its newest spec has not been looked at yet");
  }
  std::string pass =
      fmt::format("The last pass was {} and took {} ms", relative(*status.last_pass.time, now),
                  status.last_pass.duration_milliseconds);
  if (now - *status.last_pass.time > std::chrono::minutes{5} + 3 * policy.spec.interval) {
    pass += ": is kwatt-controller running?";
  }
  out.facts.push_back(pass);
  if (!status.last_action.empty()) out.facts.push_back("Last action: " + status.last_action);
  return out;
}

}  // namespace kwatt::cli
