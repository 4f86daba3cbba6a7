#include "reconcilers/policy_status.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "planner/levers.hpp"

namespace kwatt::reconcilers {
namespace {

using api::Condition;
using api::OperationKind;
using api::PowerState;
using planner::NodeView;

std::string join(const std::vector<std::string>& parts, std::string_view separator,
                 std::size_t limit = 5) {
  std::string out;
  for (std::size_t i = 0; i < parts.size() && i < limit; ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  if (parts.size() > limit) out += fmt::format(" and {} more", parts.size() - limit);
  return out;
}

bool has_label(const NodeView& node, std::string_view key, std::string_view value) {
  return node.node->meta.labels.get(key) == value;
}

void count_nodes(const planner::Snapshot& snapshot, const PolicyOutcome& outcome,
                 api::EnergyPolicyStatus& status) {
  api::NodeCounts counts;
  counts.selected = static_cast<std::int64_t>(outcome.selected.size());
  for (const auto& name : outcome.selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    const NodeView& node = found->second;
    switch (node.power_state()) {
      case PowerState::On:
        ++counts.on;
        break;
      case PowerState::Off:
        ++counts.off;
        break;
      case PowerState::PoweringOn:
      case PowerState::PoweringOff:
      case PowerState::Draining:
        ++counts.transitioning;
        break;
      case PowerState::WakeFailed:
      case PowerState::Unknown:
        break;
    }
    const bool off = node.power_state() == PowerState::Off;
    const bool slow = has_label(node, planner::names::kLabelFrequency, "low");
    const bool capped = has_label(node, planner::names::kLabelCapped, "true");
    if (slow) ++counts.slow;
    if (capped) ++counts.capped;
    if (!node.ready && !off) ++counts.unready;
  }
  status.nodes = counts;
}

template <class T, class Add>
void bounded(const std::vector<T>& all, std::int64_t& total, Add add) {
  total = static_cast<std::int64_t>(all.size());
  for (std::size_t i = 0; i < std::min(all.size(), api::kStatusListLimit); ++i) add(all[i]);
}

void list_decisions(const planner::Plan& plan, api::EnergyPolicyStatus& status) {
  std::vector<std::string> on, off;
  std::vector<api::DvfsStatus> dvfs;
  std::vector<api::CappingStatus> capping;
  for (const planner::Action& action : plan.actions) {
    const std::string reason(api::to_string(action.reason));
    if (std::holds_alternative<planner::PowerOn>(action.what)) on.push_back(action.node);
    if (std::holds_alternative<planner::PowerOff>(action.what)) off.push_back(action.node);
    if (const auto* f = std::get_if<planner::SetFrequency>(&action.what)) {
      dvfs.push_back({action.node, f->level.governor, f->level.max_frequency_mhz, reason});
    }
    if (const auto* c = std::get_if<planner::SetCap>(&action.what)) {
      capping.push_back({action.node, c->watts.value_or(0), reason});
    }
  }
  status.power_on.clear();
  status.power_off.clear();
  status.dvfs.clear();
  status.capping.clear();
  bounded(on, status.power_on_total, [&](auto& v) { status.power_on.push_back(v); });
  bounded(off, status.power_off_total, [&](auto& v) { status.power_off.push_back(v); });
  bounded(dvfs, status.dvfs_total, [&](auto& v) { status.dvfs.push_back(v); });
  bounded(capping, status.capping_total, [&](auto& v) { status.capping.push_back(v); });
}

// Actions whose operation is under way belong to the picture as well: what was decided in an
// earlier pass and is being done now.
void list_operations(const planner::Snapshot& snapshot, const PolicyOutcome& outcome,
                     api::EnergyPolicyStatus& status) {
  for (const auto& name : outcome.selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    const api::Operation& operation = found->second.operation();
    if (operation.id.empty()) continue;
    const auto add = [&](std::vector<std::string>& list, std::int64_t& total) {
      if (std::find(list.begin(), list.end(), name) != list.end()) return;
      ++total;
      if (list.size() < api::kStatusListLimit) list.push_back(name);
    };
    if (operation.kind == OperationKind::PowerOff) add(status.power_off, status.power_off_total);
    if (operation.kind == OperationKind::PowerOn) add(status.power_on, status.power_on_total);
  }
  std::sort(status.power_on.begin(), status.power_on.end());
  std::sort(status.power_off.begin(), status.power_off.end());
}

void set(api::EnergyPolicyStatus& status, const api::EnergyPolicy& policy, TimePoint now,
         std::string_view type, std::string_view value, std::string_view reason,
         std::string message) {
  Condition condition;
  condition.type = type;
  condition.status = value;
  condition.reason = reason;
  condition.message = std::move(message);
  condition.observed_generation = policy.meta.generation;
  api::set_condition(status.conditions, std::move(condition), now);
}

// How many of the selected nodes are measured now, and how many have been.
struct Measured {
  std::int64_t now = 0, ever = 0;
};
Measured measured_nodes(const planner::Snapshot& snapshot, const PolicyOutcome& outcome) {
  Measured measured;
  for (const auto& name : outcome.selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    if (!found->second.samples.empty()) ++measured.ever;
    if (planner::samples_believed(found->second, snapshot.now)) ++measured.now;
  }
  return measured;
}

void set_conditions(const api::EnergyPolicy& policy, const planner::Snapshot& snapshot,
                    const PolicyOutcome& outcome, api::EnergyPolicyStatus& status) {
  const TimePoint now = snapshot.now;
  const auto put = [&](std::string_view type, std::string_view value, std::string_view reason,
                       std::string message) {
    set(status, policy, now, type, value, reason, std::move(message));
  };
  if (!outcome.problems.empty()) {
    const std::string sentence = join(outcome.problems, "; ");
    put("Accepted", "False", "Invalid", sentence);
    put("Ready", "False", "NotAccepted", sentence);
    put("Enforcing", "False", "NotAccepted", "an invalid policy is not enforced");
    for (const std::string_view type :
         {"TelemetryAvailable", "CarbonDataAvailable", "Halted", "Conflict"}) {
      put(type, "Unknown", "NotAccepted", "not looked at while the policy is invalid");
    }
    return;
  }
  put("Accepted", "True", "Valid", "the policy is valid");

  if (policy.spec.suspend) {
    std::vector<std::string> off;
    for (const auto& name : outcome.selected) {
      const auto found = snapshot.nodes.find(name);
      if (found != snapshot.nodes.end() && found->second.power_state() == PowerState::Off) {
        off.push_back(name);
      }
    }
    std::string message = "suspended: everything stays as it is";
    if (!off.empty() && !outcome.plan.pending.empty()) {
      message += fmt::format("; {} pods are pending and these nodes are off: {}",
                             outcome.plan.pending.size(), join(off, ", "));
    }
    put("Enforcing", "False", "Suspended", message);
  } else if (outcome.releasing) {
    put("Enforcing", "False", "Releasing", "giving back what the policy held");
  } else if (!outcome.enforcing) {
    put("Enforcing", "False", "RecommendOnly",
        "mode is Recommend: decisions are reported and not carried out");
  } else {
    put("Enforcing", "True", "Enforce", "decisions are carried out");
  }

  const Measured measured = measured_nodes(snapshot, outcome);
  const std::string troubles = join(outcome.telemetry_problems, "; ");
  if (outcome.selected.empty()) {
    put("TelemetryAvailable", "Unknown", "NoNodes", "no node is selected");
  } else if (measured.now == 0 && !troubles.empty()) {
    put("TelemetryAvailable", "False", "SourceFailed", troubles);
  } else if (measured.ever == 0) {
    put("TelemetryAvailable", "False", "NoSamples",
        "no agent has sent samples: frequency and caps are not decided");
  } else if (measured.now == 0) {
    put("TelemetryAvailable", "False", api::to_string(api::Reason::StaleTelemetry),
        "all samples are old: nothing is decided that takes capacity away");
  } else {
    const std::string counts =
        fmt::format("samples of {} of {} selected nodes", measured.now, outcome.selected.size());
    if (troubles.empty()) {
      put("TelemetryAvailable", "True", "Samples", counts);
    } else {
      put("TelemetryAvailable", "True", "SourceFailing", counts + "; " + troubles);
    }
  }
  if (policy.spec.carbon.source.empty()) {
    put("CarbonDataAvailable", "Unknown", "NotAsked", "spec.carbon.source is empty");
  } else if (!outcome.carbon) {
    put("CarbonDataAvailable", "Unknown", "NotRead", "no carbon intensity has been read");
  } else {
    put("CarbonDataAvailable", outcome.carbon->status, outcome.carbon->reason,
        outcome.carbon->message);
  }

  if (outcome.plan.halted) {
    put("Halted", "True", api::to_string(*outcome.plan.halted),
        outcome.plan.halted_message + "; nothing takes capacity away until this has passed");
  } else {
    put("Halted", "False", "None", "no guard is active");
  }

  if (outcome.lost.empty()) {
    put("Conflict", "False", "None", "no other policy has any of the selected nodes");
  } else {
    std::vector<std::string> lines;
    lines.reserve(outcome.lost.size());
    for (const auto& loss : outcome.lost) {
      lines.push_back(fmt::format("{} belongs to {}", loss.node, loss.winner));
    }
    put("Conflict", "True", api::to_string(api::Reason::Conflict), join(lines, ", "));
  }

  if (!snapshot.sync.synced) {
    put("Ready", "False", api::to_string(api::Reason::NotSynced), "the caches are not filled yet");
  } else {
    put("Ready", "True", "Reconciled",
        fmt::format("{} nodes selected, {} actions in the last pass", outcome.selected.size(),
                    outcome.plan.actions.size()));
  }
}

}  // namespace

api::EnergyPolicyStatus policy_status(const api::EnergyPolicy& policy,
                                      const planner::Snapshot& snapshot,
                                      const PolicyOutcome& outcome) {
  api::EnergyPolicyStatus status = policy.status;
  status.observed_generation = policy.meta.generation;
  status.memory.high_since = outcome.plan.policy_memory.high_since;
  EnergyAccount account = outcome.account.value_or(account_of(policy.status));
  if (outcome.problems.empty()) {
    count_nodes(snapshot, outcome, status);
    account = held_until(std::move(account), snapshot.now, policy.spec.interval,
                         outcome.carbon_grams_per_kwh);
    account.power = power_of(snapshot, outcome.selected, account.power);
    list_decisions(outcome.plan, status);
    list_operations(snapshot, outcome, status);
    status.migrations.clear();
    bounded(outcome.migrations, status.migrations_total,
            [&](const auto& m) { status.migrations.push_back(m); });
    status.budgets.clear();
    for (const auto& budget : outcome.plan.budgets) {
      status.budgets.push_back(
          {budget.name, budget.allowed, budget.used, budget.binds, budget.active_until});
    }
  }
  status.power = account.power;
  status.memory.saved_milliwatt_seconds = account.saved_milliwatt_seconds;
  status.memory.saved_micrograms_co2 = account.saved_micrograms_co2;
  set_conditions(policy, snapshot, outcome, status);
  status.last_pass = {snapshot.now, outcome.pass_duration.count(), snapshot.sync.age.count()};
  if (!outcome.last_action.empty()) status.last_action = outcome.last_action;
  return status;
}

bool worth_writing(const api::EnergyPolicyStatus& written, const api::EnergyPolicyStatus& next,
                   Duration refresh) {
  if (!written.last_pass.time || *next.last_pass.time - *written.last_pass.time >= refresh) {
    return true;
  }
  api::EnergyPolicyStatus same_times = next;
  same_times.last_pass = written.last_pass;
  // The sums grow all the time; whoever computes the next status has them in memory.
  same_times.memory.saved_milliwatt_seconds = written.memory.saved_milliwatt_seconds;
  same_times.memory.saved_micrograms_co2 = written.memory.saved_micrograms_co2;
  same_times.power.saved_watt_hours = written.power.saved_watt_hours;
  if (next.power.saved_grams_co2.has_value() == written.power.saved_grams_co2.has_value()) {
    same_times.power.saved_grams_co2 = written.power.saved_grams_co2;
  }
  const auto close = [](std::int64_t a, std::int64_t b) {
    return std::abs(a - b) <= std::max<std::int64_t>(5'000, a / 20);
  };
  if (close(written.power.measured_milliwatts, next.power.measured_milliwatts) &&
      close(written.power.estimated_milliwatts, next.power.estimated_milliwatts) &&
      close(written.power.baseline_milliwatts, next.power.baseline_milliwatts)) {
    const auto grams = same_times.power.saved_grams_co2;
    same_times.power = written.power;
    same_times.power.saved_grams_co2 = grams;
  }
  return same_times != written;
}

}  // namespace kwatt::reconcilers
