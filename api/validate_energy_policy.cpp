// The rules of EnergyPolicy: those of crds/energypolicies.yaml once more, and what the API server
// cannot check. test/golden/policies/ has a case for each, with who refuses it.
#include <set>

#include "api/cron.hpp"
#include "api/energy_policy.hpp"
#include "api/problems.hpp"
#include "api/validate_parts.hpp"
#include "api/window.hpp"
#include "api/words.hpp"

namespace kwatt::api {
namespace {

constexpr std::int64_t kMany = 100'000;  // more nodes than a cluster can have

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// "0".."99999" or "0%".."100%"
bool is_node_amount(std::string_view text) {
  if (text.size() > 1 && text.back() == '%') {
    text.remove_suffix(1);
    return text == "100" || (all_digits(text) && text.size() <= 2);
  }
  return all_digits(text) && text.size() <= 5;
}

// A letter first, then letters and digits.
bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

void check(const PowerOnSpec& on, Problems& out) {
  out.at_least("spec.powerOn.pendingFor", on.pending_for, Duration{0});
  out.within("spec.powerOn.headroom.cpuPercent", on.headroom.cpu_percent, 0, 100);
  out.within("spec.powerOn.headroom.memoryPercent", on.headroom.memory_percent, 0, 100);
  out.within("spec.powerOn.highUtilizationPercent", on.high_utilization_percent, 1, 100);
  out.at_least("spec.powerOn.highFor", on.high_for, Duration{0});
  out.within("spec.powerOn.maxPerMinute", on.max_per_minute, 1, 10'000);
  out.at_least("spec.powerOn.bootTimeout", on.boot_timeout, seconds{1});
}

void check(const PowerOffSpec& off, Problems& out) {
  out.at_least("spec.powerOff.idleFor", off.idle_for, Duration{0});
  out.within("spec.powerOff.minAwake", off.min_awake, 0, kMany);
  out.within("spec.powerOff.minAwakePerZone", off.min_awake_per_zone, 0, kMany);
  out.at_least("spec.powerOff.minOnDuration", off.min_on_duration, Duration{0});
  out.at_least("spec.powerOff.minOffDuration", off.min_off_duration, Duration{0});
  out.within("spec.powerOff.maxCyclesPerDay", off.max_cycles_per_day, 1, 1'000);
  out.within("spec.powerOff.maxPerMinute", off.max_per_minute, 1, 10'000);
  out.at_least("spec.powerOff.softTimeout", off.soft_timeout, seconds{1});
}

void check(const MigrationSpec& migration, Problems& out) {
  out.within("spec.migration.maxNodes", migration.max_nodes, 1, 1'000);
  out.within("spec.migration.utilizationBelowPercent", migration.utilization_below_percent, 1, 100);
  out.within("spec.migration.minSavingScore", migration.min_saving_score, 0, 10'000);
  out.at_least("spec.migration.drainTimeout", migration.drain_timeout, seconds{1});
  out.at_least("spec.migration.evictionRetry", migration.eviction_retry, seconds{1});
  if (migration.eviction_retry > migration.drain_timeout) {
    out.add("spec.migration.evictionRetry",
            "{} must not be longer than drainTimeout ({}), or a refused eviction is never retried",
            format_go_duration(migration.eviction_retry),
            format_go_duration(migration.drain_timeout));
  }
}

void check(const FrequencyLevel& level, const std::string& path, Problems& out) {
  if (!level.governor.empty()) out.one_of(path + ".governor", level.governor, kGovernors);
  out.within(path + ".maxFrequencyMHz", level.max_frequency_mhz, 0, 20'000);
  const std::string& epp = level.energy_performance_preference;
  const bool number = all_digits(epp) && epp.size() <= 3 && std::stoi(epp) <= 255;
  const auto& words = kEnergyPreferences;
  if (!epp.empty() && !number && std::find(words.begin(), words.end(), epp) == words.end()) {
    out.add(path + ".energyPerformancePreference",
            "\"{}\" must be one of {}, or a number from 0 to 255", epp, fmt::join(words, ", "));
  }
}

void check(const DvfsSpec& dvfs, Problems& out) {
  out.within("spec.dvfs.lowUtilizationPercent", dvfs.low_utilization_percent, 0, 99);
  out.within("spec.dvfs.highUtilizationPercent", dvfs.high_utilization_percent, 1, 100);
  if (dvfs.low_utilization_percent >= dvfs.high_utilization_percent) {
    out.add("spec.dvfs.lowUtilizationPercent",
            "{} must be below highUtilizationPercent ({}); the gap between them keeps nodes from "
            "flapping",
            dvfs.low_utilization_percent, dvfs.high_utilization_percent);
  }
  out.at_least("spec.dvfs.window", dvfs.window, seconds{1});
  check(dvfs.low, "spec.dvfs.low", out);
  check(dvfs.high, "spec.dvfs.high", out);
  const std::int64_t low = dvfs.low.max_frequency_mhz;
  const std::int64_t high = dvfs.high.max_frequency_mhz;
  if (low > 0 && high > 0 && low > high) {
    out.add("spec.dvfs.low.maxFrequencyMHz", "{} must not be above high.maxFrequencyMHz ({})", low,
            high);
  }
  out.within("spec.dvfs.idleNodes", dvfs.idle_nodes, 0, kMany);
  out.within("spec.dvfs.maxSlowdownPercent", dvfs.max_slowdown_percent, 0, 100);
  const DvfsMigrationSpec& migration = dvfs.migration;
  out.within("spec.dvfs.migration.abovePercent", migration.above_percent, 1, 100);
  out.within("spec.dvfs.migration.untilPercent", migration.until_percent, 0, 99);
  if (migration.until_percent >= migration.above_percent) {
    out.add("spec.dvfs.migration.untilPercent", "{} must be below abovePercent ({})",
            migration.until_percent, migration.above_percent);
  }
  out.within("spec.dvfs.migration.maxPods", migration.max_pods, 1, 1'000);
}

void check(const CappingSpec& capping, Problems& out) {
  out.within("spec.capping.abovePercentOfMax", capping.above_percent_of_max, 1, 100);
  out.within("spec.capping.capPercentOfMax", capping.cap_percent_of_max, 1, 100);
  out.within("spec.capping.releasePercentOfMax", capping.release_percent_of_max, 0, 99);
  if (capping.release_percent_of_max >= capping.cap_percent_of_max) {
    out.add("spec.capping.releasePercentOfMax",
            "{} must be below capPercentOfMax ({}), or a capped node is released at once",
            capping.release_percent_of_max, capping.cap_percent_of_max);
  }
  if (capping.cap_percent_of_max > capping.above_percent_of_max) {
    out.add("spec.capping.capPercentOfMax", "{} must not be above abovePercentOfMax ({})",
            capping.cap_percent_of_max, capping.above_percent_of_max);
  }
  out.at_least("spec.capping.window", capping.window, seconds{1});
  out.within("spec.capping.budgetWatts", capping.budget_watts, 0, 1'000'000'000);
  out.within("spec.capping.migration.maxPods", capping.migration.max_pods, 1, 1'000);
}

void check(const PlacementSpec& placement, Problems& out) {
  out.size("spec.placement.plugins", placement.plugins.size(), 32);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < placement.plugins.size(); ++i) {
    const PluginWeight& plugin = placement.plugins[i];
    const std::string path = fmt::format("spec.placement.plugins[{}]", i);
    if (!is_word(plugin.name) || plugin.name.size() > 63) {
      out.add(path + ".name", "\"{}\" must be the name of a plugin, such as EnergyIncrease",
              plugin.name);
    }
    if (!seen.insert(plugin.name).second) {
      out.add(path + ".name", "{} is listed twice; keep one of the entries", plugin.name);
    }
    out.within(path + ".weight", plugin.weight, 0, 1'000);
  }
}

void check(const CarbonSpec& carbon, Problems& out) {
  out.length("spec.carbon.source", carbon.source, 512);
  out.length("spec.carbon.zone", carbon.zone, 63);
  out.size("spec.carbon.tiers", carbon.tiers.size(), 16);
  for (std::size_t i = 0; i < carbon.tiers.size(); ++i) {
    const CarbonTier& tier = carbon.tiers[i];
    const std::string path = fmt::format("spec.carbon.tiers[{}]", i);
    out.within(path + ".belowGramsPerKWh", tier.below_grams_per_kwh, 1, 100'000);
    if (!is_word(tier.action) || tier.action.size() > 32) {
      out.add(path + ".action", "\"{}\" must be a word such as Normal", tier.action);
    }
    if (i > 0 && tier.below_grams_per_kwh <= carbon.tiers[i - 1].below_grams_per_kwh) {
      out.add(path + ".belowGramsPerKWh", "{} must be above that of the tier before it ({})",
              tier.below_grams_per_kwh, carbon.tiers[i - 1].below_grams_per_kwh);
    }
  }
  out.at_least("spec.carbon.staleAfter", carbon.stale_after, seconds{1});
  out.at_least("spec.carbon.maxDelay", carbon.max_delay, Duration{0});
}

void check_schedule(const Budget& budget, const std::string& path, Problems& out) {
  if (budget.schedule.empty() != (budget.duration == Duration{0})) {
    out.add(path, "schedule and duration come together: give both, or neither for always");
    return;
  }
  if (budget.schedule.empty()) {
    if (!budget.time_zone.empty()) {
      out.add(path + ".timeZone", "a time zone means nothing without a schedule; remove it");
    }
    return;
  }
  out.at_least(path + ".duration", budget.duration, minutes{1});
  out.at_most(path + ".duration", budget.duration, hours{744});
  out.length(path + ".schedule", budget.schedule, 128);
  if (const auto cron = Cron::parse(budget.schedule); !cron) {
    out.add(path + ".schedule",
            "\"{}\" is no cron schedule: {}; write five fields such as \"0 22 * * mon-fri\"",
            budget.schedule, cron.error().message);
  }
  if (!time_zone_exists(budget.time_zone)) {
    out.add(path + ".timeZone", "there is no time zone \"{}\"; write one such as Europe/Berlin",
            budget.time_zone);
  }
}

void check(const DisruptionSpec& disruption, Problems& out) {
  out.size("spec.disruption.budgets", disruption.budgets.size(), 32);
  out.within("spec.disruption.minReplicas", disruption.min_replicas, 0, 1000);
  std::set<std::string> names;
  for (std::size_t i = 0; i < disruption.budgets.size(); ++i) {
    const Budget& budget = disruption.budgets[i];
    const std::string path = fmt::format("spec.disruption.budgets[{}]", i);
    out.length(path + ".name", budget.name, 63);
    if (!budget.name.empty() && !names.insert(budget.name).second) {
      out.add(path + ".name", "{} names two budgets; names must differ", budget.name);
    }
    if (!is_node_amount(budget.nodes)) {
      out.add(path + ".nodes",
              "\"{}\" must be a number of nodes such as 3, or a percentage such as "
              "10%",
              budget.nodes);
    }
    out.size(path + ".reasons", budget.reasons.size(), kBudgetReasons.size());
    std::set<std::string> reasons;
    for (const std::string& reason : budget.reasons) {
      out.one_of(path + ".reasons", reason, kBudgetReasons);
      if (!reasons.insert(reason).second) out.add(path + ".reasons", "{} is listed twice", reason);
    }
    check_schedule(budget, path, out);
  }
}

}  // namespace

std::vector<std::string> validate(const EnergyPolicySpec& spec) {
  Problems out;
  out.within("spec.priority", spec.priority, -1'000'000, 1'000'000);
  out.at_least("spec.interval", spec.interval, seconds{1});
  out.at_most("spec.interval", spec.interval, hours{1});
  check_selector(spec.node_selector, "spec.nodeSelector", 32, 64, out);
  check(spec.power_on, out);
  check(spec.power_off, out);
  check(spec.migration, out);
  check(spec.dvfs, out);
  check(spec.capping, out);
  check(spec.placement, out);
  check(spec.carbon, out);
  check(spec.disruption, out);
  return out.take();
}

}  // namespace kwatt::api
