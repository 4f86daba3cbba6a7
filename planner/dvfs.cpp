// DVFS: slow down what has little to do, speed up what has much, and spread what is too much.
#include <algorithm>

#include <fmt/format.h>

#include "planner/arrival.hpp"
#include "planner/destinations.hpp"
#include "planner/drain.hpp"
#include "planner/propose.hpp"
#include "planner/request.hpp"
#include "planner/settings.hpp"

namespace kwatt::planner {
namespace {

std::string percent_text(Permille value) {
  return fmt::format("{}.{} %", value.count() / 10, value.count() % 10);
}

// What the hardware does not offer of this level, as its agent reports it.
std::optional<Verdict> out_of_range(const api::AgentReport& report, const api::FrequencyLevel& l) {
  const auto& offered = report.available_governors;
  if (!l.governor.empty() &&
      std::find(offered.begin(), offered.end(), l.governor) == offered.end()) {
    return Verdict{Reason::OutOfRange,
                   fmt::format("governor {} is not offered; there are: {}", l.governor,
                               offered.empty() ? "none" : list_text(offered, offered.size()))};
  }
  if (l.max_frequency_mhz > 0 && (l.max_frequency_mhz < report.hardware_min_mhz ||
                                  l.max_frequency_mhz > report.hardware_max_mhz)) {
    return Verdict{Reason::OutOfRange,
                   fmt::format("{} MHz is not within {}..{} MHz", l.max_frequency_mhz,
                               report.hardware_min_mhz, report.hardware_max_mhz)};
  }
  return std::nullopt;
}

// A CPU this busy has more to do than it can: how much more, no sample tells.
constexpr Permille kSaturated = percent(95);
// A load must leave this much of the slower machine free, else it would be sped up again at once.
constexpr Permille kFitsSlower = percent(90);

// The frequency that `level` holds the machine at, 0 if it leaves that to the load. powersave is
// the minimum with acpi-cpufreq, which offers other governors too, and dynamic with intel_pstate
// and amd-pstate-epp, which offer only performance beside it (kernel, admin-guide/pm/cpufreq.rst).
std::int64_t fixed_megahertz(const api::AgentReport& report, const api::FrequencyLevel& level) {
  const auto& offered = report.available_governors;
  const bool dynamic = std::all_of(offered.begin(), offered.end(), [](const std::string& governor) {
    return governor == "performance" || governor == "powersave";
  });
  if (level.governor == "powersave" && !dynamic) return report.hardware_min_mhz;
  return level.max_frequency_mhz;
}

// How busy the present load would keep the machine at this level: utilization is
// frequency-invariant, so it is a share of the maximum frequency. May exceed 1000.
Permille busy_at(const api::AgentReport& report, const api::FrequencyLevel& level,
                 Permille utilization) {
  const std::int64_t megahertz = fixed_megahertz(report, level);
  if (megahertz <= 0 || report.hardware_max_mhz <= 0) return utilization;
  return Permille{utilization.count() * report.hardware_max_mhz / megahertz};
}

bool holds_frequency(const NodeView& node) {
  const RequestNote note = request_on(*node.node);
  return std::any_of(frequency_keys().begin(), frequency_keys().end(),
                     [&](const auto& key) { return note.keys.count(key) > 0; });
}

class DvfsLever {
 public:
  DvfsLever(Pass& pass, Proposal& proposal)
      : pass_(pass),
        spec_(pass.spec.dvfs),
        proposal_(proposal),
        candidates_(pass.snapshot, pass.spec.disruption) {}

  void run() {
    if (spec_.migration.enabled) spread();
    for (const NodeName& name : pass_.selected) {
      const auto found = pass_.snapshot.nodes.find(name);
      if (found == pass_.snapshot.nodes.end() || !is_running(found->second)) continue;
      if (!acted_on(name)) look_at(found->second);
    }
  }

 private:
  void refuse(const NodeView& node, Verdict verdict) {
    proposal_.refusals.insert_or_assign(node.name(), std::move(verdict));
  }
  bool acted_on(const NodeName& name) const {
    return std::any_of(proposal_.actions.begin(), proposal_.actions.end(),
                       [&](const Action& action) { return action.node == name; });
  }

  void look_at(const NodeView& node) {
    if (auto verdict = settings_refused(pass_, node, frequency_keys())) {
      return refuse(node, std::move(*verdict));
    }
    if (const auto slowed = slowed_since(node)) {
      if (const auto arrival = arrival_since(node, *slowed)) return restore(node, *arrival);
    }
    const auto mean = window_mean(node, spec_.window, pass_.snapshot.now);
    if (!mean) {
      return refuse(node, {Reason::StaleTelemetry, fmt::format("no samples of the last {}",
                                                               format_go_duration(spec_.window))});
    }
    // A slowed machine that is saturated hides its load: 25 % of the maximum is all it can show at
    // a quarter of the frequency.
    const bool hidden = mean->busy >= kSaturated && mean->utilization < kSaturated;
    if (hidden) {
      set(node, spec_.high, false, Reason::HighLoad, mean->utilization);
    } else if (mean->utilization < percent(spec_.low_utilization_percent)) {
      slow_down(node, mean->utilization);
    } else if (mean->utilization > percent(spec_.high_utilization_percent)) {
      set(node, spec_.high, false, Reason::HighLoad, mean->utilization);
    } else {
      refuse(node, {Reason::InUse,
                    fmt::format("{} utilized, between {} and {} %: left as it is",
                                percent_text(mean->utilization), spec_.low_utilization_percent,
                                spec_.high_utilization_percent)});
    }
  }

  // Since when it runs at dvfs.low; nullopt: it does not.
  std::optional<TimePoint> slowed_since(const NodeView& node) const {
    const api::AgentRequest low = request_of(spec_.low);
    if (low == request_of(spec_.high) || !in_force(*node.node, low, frequency_keys())) {
      return std::nullopt;
    }
    return held_since(node, frequency_keys());
  }

  // kube-scheduler has chosen a slow node: nothing else fitted. Its load will show in the samples
  // only later.
  void restore(const NodeView& node, const Arrival& arrival) {
    if (auto verdict = out_of_range(node.machine->status.report, spec_.high)) {
      return refuse(node, std::move(*verdict));
    }
    proposal_.actions.push_back(action_on(
        pass_, node, SetFrequency{spec_.high, false}, Reason::Scheduled,
        fmt::format("pod {} was scheduled to it while it was slow", arrival.pod), Milliwatts{}));
  }

  void slow_down(const NodeView& node, Permille utilization) {
    if (pass_.what_if.incoming(node.name()) > 0) {
      return refuse(node, {Reason::InUse, "pods are on their way to it"});
    }
    // Or what was restored for a pod would be slow again before the pod has begun to work.
    const TimePoint now = pass_.snapshot.now;
    const auto arrival = arrival_since(node, now - spec_.window);
    if (arrival && now - arrival->at < spec_.window && !slowed_since(node)) {
      wake_after(proposal_, std::max(Duration{1'000}, arrival->at + spec_.window - now));
      return refuse(node, {Reason::Scheduled,
                           fmt::format("pod {} came within the last {}: the readings do not have "
                                       "its load yet",
                                       arrival->pod, format_go_duration(spec_.window))});
    }
    const api::AgentReport& report = node.machine->status.report;
    const Permille busy = busy_at(report, spec_.low, utilization);
    const Permille loss{std::max<std::int64_t>(0, busy.count() - 1000)};
    if (loss > percent(spec_.max_slowdown_percent)) {
      return refuse(
          node, {Reason::NotWorthIt, fmt::format("{} MHz would slow the load by {}, above {} %",
                                                 fixed_megahertz(report, spec_.low),
                                                 percent_text(loss), spec_.max_slowdown_percent)});
    }
    if (busy > kFitsSlower) {
      return refuse(node, {Reason::NotWorthIt,
                           fmt::format("{} MHz would be {} busy and have to be sped up again",
                                       fixed_megahertz(report, spec_.low), percent_text(busy))});
    }
    set(node, spec_.low, true, Reason::LowUtilization, utilization);
  }

  void set(const NodeView& node, const api::FrequencyLevel& level, bool low, Reason reason,
           Permille utilization) {
    const std::int64_t limit = low ? spec_.low_utilization_percent : spec_.high_utilization_percent;
    std::string load = fmt::format("{} utilized, {} {} %", percent_text(utilization),
                                   low ? "below" : "above", limit);
    if (!low && utilization <= percent(limit)) {
      load =
          fmt::format("{} utilized and fully busy at a low frequency", percent_text(utilization));
    }
    const api::AgentRequest request = request_of(level);
    if (request == api::AgentRequest{}) {
      if (!holds_frequency(node)) return refuse(node, {reason, load + ": left to the driver"});
    }
    if (auto verdict = out_of_range(node.machine->status.report, level)) {
      return refuse(node, std::move(*verdict));
    }
    if (in_force(*node.node, request, frequency_keys())) {
      return refuse(node, {reason, load + ": set already"});
    }
    proposal_.actions.push_back(
        action_on(pass_, node, SetFrequency{level, low}, reason, load, Milliwatts{}));
  }

  // dvfs.migration: nodes above abovePercent, the busiest first, send pods to nodes with little
  // load until they are predicted below untilPercent.
  void spread() {
    struct Busy {
      const NodeView* node;
      Permille utilization;
    };
    std::vector<Busy> busy;
    for (const NodeName& name : pass_.selected) {
      const auto found = pass_.snapshot.nodes.find(name);
      if (found == pass_.snapshot.nodes.end() || !is_running(found->second)) continue;
      const auto mean = window_mean(found->second, spec_.window, pass_.snapshot.now);
      if (mean && mean->utilization > percent(spec_.migration.above_percent)) {
        busy.push_back({&found->second, mean->utilization});
      }
    }
    std::stable_sort(busy.begin(), busy.end(),
                     [](const Busy& a, const Busy& b) { return a.utilization > b.utilization; });
    std::vector<Destination> destinations =
        destinations_below(pass_, percent(spec_.low_utilization_percent), spec_.window);
    for (const Busy& b : busy) send_away(*b.node, b.utilization, destinations);
  }

  void send_away(const NodeView& node, Permille utilization,
                 std::vector<Destination>& destinations) {
    if (protected_from_migration(node)) return;
    const Permille until = percent(spec_.migration.until_percent);
    // Strictly below, hence the one more.
    const Permille excess = utilization - until + Permille{1};
    const Relief relief =
        relieve(pass_, candidates_, node, utilization, excess,
                static_cast<std::size_t>(spec_.migration.max_pods), destinations, until);
    if (relief.moves.empty()) return;
    proposal_.actions.push_back(
        action_on(pass_, node, Migrate{relief.moves}, Reason::HighLoad,
                  fmt::format("{} utilized, above {} %: {} pods move, {} predicted",
                              percent_text(utilization), spec_.migration.above_percent,
                              relief.moves.size(), percent_text(utilization - relief.moved)),
                  Milliwatts{}));
  }

  bool protected_from_migration(const NodeView& node) const {
    if (!node.operation().id.empty() || node.control_plane || node.own_node) return true;
    if (node.node->meta.annotations.get(names::kExclude) == "true") return true;
    const auto& rest = node.memory().cool_down_until;
    return rest && *rest > pass_.snapshot.now;
  }

  Pass& pass_;
  const api::DvfsSpec& spec_;
  Proposal& proposal_;
  Candidates candidates_;
};

// Who switches dvfs off wants the machines' own settings back.
Proposal give_back(const Pass& pass) {
  Proposal proposal;
  for (const NodeName& name : pass.selected) {
    const auto found = pass.snapshot.nodes.find(name);
    if (found == pass.snapshot.nodes.end() || !is_running(found->second)) continue;
    const NodeView& node = found->second;
    if (!holds_frequency(node) || settings_refused(pass, node, frequency_keys())) continue;
    proposal.actions.push_back(
        action_on(pass, node, SetFrequency{api::FrequencyLevel{}, false}, Reason::LeverDisabled,
                  "dvfs.enabled is false: its own frequency settings return", Milliwatts{}));
  }
  return proposal;
}

}  // namespace

Proposal dvfs(Pass& pass) {
  Proposal proposal;
  if (!pass.spec.dvfs.enabled) return give_back(pass);
  DvfsLever{pass, proposal}.run();
  return proposal;
}

std::set<NodeName> idle_pool(const Pass& pass) {
  std::set<NodeName> pool;
  const auto wanted = static_cast<std::size_t>(
      std::max<std::int64_t>(0, pass.spec.dvfs.enabled ? pass.spec.dvfs.idle_nodes : 0));
  // Those at low frequency first, so that the pool does not change while it is still slowing down.
  for (const bool slow : {true, false}) {
    for (const NodeName& name : pass.selected) {
      if (pool.size() >= wanted) return pool;
      const auto found = pass.snapshot.nodes.find(name);
      if (found == pass.snapshot.nodes.end()) continue;
      const NodeView& node = found->second;
      const bool is_slow = node.node->meta.labels.get(names::kLabelFrequency) == "low";
      if (is_slow != slow || !counts_as_awake(node) || workload_count(node) > 0) continue;
      if (node.control_plane || node.own_node ||
          node.node->meta.annotations.get(names::kExclude) == "true") {
        continue;
      }
      pool.insert(name);
    }
  }
  return pool;
}

}  // namespace kwatt::planner
