#include "agent/plan.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kwatt::agent {
namespace {

using hardware::CpuPolicy;
using hardware::PowerZone;

constexpr std::string_view kPerformance = "performance";
// What drivers with preferences start from; the fallback where the original cannot be known.
constexpr std::string_view kUsualPreference = "balance_performance";

bool unreadable(const DesiredSettings& desired, Lever lever) {
  return std::find(desired.unreadable.begin(), desired.unreadable.end(), lever) !=
         desired.unreadable.end();
}

// Whose value a lever takes.
enum class Take { desired, original, present };

// Decides it, and what is held afterwards; a refusal leaves the present value alone.
Take choose(bool wanted, const Result<void>& check, bool unreadable, bool& held,
            std::vector<std::string>& refusals) {
  if (unreadable) return Take::present;
  if (!wanted) return held ? Take::original : Take::present;
  if (!check) {
    refusals.push_back(check.error().text());
    return Take::present;
  }
  held = true;
  return Take::desired;
}

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : desired_(input.desired), now_(input.now), original_(input.original), input_(input) {
    plan_.held = input.held;
  }

  Plan run() {
    plan_cpu();
    plan_cap();
    plan_uncore();
    note_owed();
    return std::move(plan_);
  }

 private:
  void plan_cpu() {
    const auto& cpu = now_.cpu;
    const Take governor =
        choose(desired_.governor.has_value(),
               desired_.governor ? hardware::check_governor(cpu, *desired_.governor) : ok(),
               unreadable(desired_, Lever::governor), plan_.held.governor, plan_.refusals);
    const Take frequency = choose(
        desired_.max_frequency.has_value(),
        desired_.max_frequency ? hardware::check_max_frequency(cpu, *desired_.max_frequency) : ok(),
        unreadable(desired_, Lever::frequency), plan_.held.frequency, plan_.refusals);
    const Take preference =
        choose(desired_.preference.has_value(), check_preference(governor),
               unreadable(desired_, Lever::preference), plan_.held.preference, plan_.refusals);
    bool governor_differs = false, frequency_differs = false, preference_differs = false;
    for (const CpuPolicy& policy : cpu.policies) {
      CpuPolicy wanted = policy;
      const bool owed = input_.held.owed.owes(policy.index);
      const Take of_governor = owed_take(governor, owed);
      set_governor(wanted, of_governor);
      set_limits(wanted, owed_take(frequency, owed));
      wanted.epp = preference_of(wanted, of_governor, owed_take(preference, owed));
      auto writes = hardware::changes(
          policy, wanted, preference == Take::desired ? input_.shown_preference : std::string{});
      if (owed && writes.empty()) std::erase(plan_.held.owed.policies, policy.index);
      governor_differs |= wanted.governor != policy.governor;
      frequency_differs |= wanted.min_khz != policy.min_khz || wanted.max_khz != policy.max_khz;
      preference_differs |= !wanted.epp.empty() && wanted.epp != policy.epp;
      std::move(writes.begin(), writes.end(), std::back_inserter(plan_.writes));
    }
    // Let go of what is back as it was.
    if (governor == Take::original && !governor_differs && !preference_differs) {
      plan_.held.governor = false;
    }
    if (frequency == Take::original && !frequency_differs) plan_.held.frequency = false;
    if (preference == Take::original && !preference_differs) plan_.held.preference = false;
    if (!lost_governor_.empty()) {
      plan_.refusals.push_back(
          fmt::format("the original governor {} is not offered by {}: the present one stays",
                      lost_governor_, cpu.driver));
    }
  }

  // What nobody asks of a policy that came back is its original setting.
  static Take owed_take(Take take, bool owed) {
    return owed && take == Take::present ? Take::original : take;
  }

  // Who is away when a lever is let go is owed the restoring.
  void note_owed() {
    const Held &before = input_.held, &after = plan_.held;
    Owed& owed = plan_.held.owed;
    const bool cpu_let_go = (before.governor && !after.governor) ||
                            (before.frequency && !after.frequency) ||
                            (before.preference && !after.preference);
    if (cpu_let_go) {
      for (const PolicySettings& settings : original_.policies) {
        const bool here =
            std::any_of(now_.cpu.policies.begin(), now_.cpu.policies.end(),
                        [&](const CpuPolicy& policy) { return policy.index == settings.index; });
        if (!here && !input_.held.owed.owes(settings.index)) {
          owed.policies.push_back(settings.index);
        }
      }
      std::sort(owed.policies.begin(), owed.policies.end());
    }
    if (!before.cap || after.cap) return;
    for (const ZoneSettings& settings : original_.zones) {
      const bool here = std::any_of(now_.zones.begin(), now_.zones.end(),
                                    [&](const PowerZone& zone) { return zone.id == settings.id; });
      if (!here && !owed.owes(settings.id)) owed.zones.push_back(settings.id);
    }
  }

  static Result<void> ok() { return {}; }

  Result<void> check_preference(Take governor) const {
    if (!desired_.preference) return ok();
    const CpuPolicy* first = now_.cpu.policies.empty() ? nullptr : &now_.cpu.policies.front();
    std::string in_force;
    if (governor == Take::desired) in_force = *desired_.governor;
    if (governor == Take::original && first != nullptr) {
      if (const auto* settings = original_.policy(first->index)) in_force = settings->governor;
    }
    return hardware::check_preference(now_.cpu, *desired_.preference, in_force);
  }

  void set_governor(CpuPolicy& wanted, Take take) {
    if (take == Take::desired) wanted.governor = *desired_.governor;
    const auto* original = original_.policy(wanted.index);
    if (take != Take::original || original == nullptr) return;
    const auto& offered = now_.cpu.governors;
    if (std::find(offered.begin(), offered.end(), original->governor) != offered.end()) {
      wanted.governor = original->governor;
    } else if (wanted.governor != original->governor) {
      lost_governor_ = original->governor;  // the driver is another than it was
    }
  }

  void set_limits(CpuPolicy& wanted, Take take) const {
    const auto* original = original_.policy(wanted.index);
    if (take == Take::desired) {
      wanted.max_khz = hardware::policy_khz(wanted, *desired_.max_frequency);
      const std::int64_t low = original != nullptr ? original->min_khz : wanted.min_khz;
      wanted.min_khz = std::min(low, wanted.max_khz);
    }
    if (take == Take::original && original != nullptr) {
      wanted.min_khz = original->min_khz;
      wanted.max_khz = original->max_khz;
    }
  }

  // The preference to write, once wanted.governor is known; "" leaves it to the driver.
  std::string preference_of(const CpuPolicy& wanted, Take governor, Take preference) const {
    if (preference == Take::desired) return *desired_.preference;
    const bool forces = wanted.performance_forces_epp;
    if (wanted.governor == kPerformance && forces) return {};
    const auto* original = original_.policy(wanted.index);
    if (original == nullptr) return {};
    const bool known = !forces || original->governor != kPerformance;  // else it was hidden
    if (preference == Take::original) {
      return known ? original->epp : offered(kUsualPreference);
    }
    // Some drivers come back from `performance` with a preference of their own choice.
    const bool asked = desired_.preference || unreadable(desired_, Lever::preference);
    return governor == Take::original && known && !asked ? original->epp : std::string{};
  }

  std::string offered(std::string_view preference) const {
    const auto& words = now_.cpu.preferences;
    const bool found = std::find(words.begin(), words.end(), preference) != words.end();
    return found ? std::string(preference) : std::string{};
  }

  void plan_cap() {
    Result<void> check = ok();
    std::int64_t share_uw = 0;
    if (desired_.power_cap) {
      const CapRange range = cap_range(now_, original_);
      const auto packages = hardware::package_range(now_.zones);
      const std::int64_t cap = desired_.power_cap->count() / 1000;
      if (!packages) {
        check = fail(ErrorCode::unsupported,
                     "this machine's CPU packages have no power limit that could be set");
      } else if (cap < range.min_watts || cap > range.max_watts) {
        check = fail(ErrorCode::out_of_range,
                     fmt::format("power cap {} W is outside the hardware's {} to {} W", cap,
                                 range.min_watts, range.max_watts));
      } else {
        share_uw = (*desired_.power_cap - now_.non_package.value_or(Milliwatts{0})).count() * 1000 /
                   packages->packages;
      }
    }
    const bool wait =
        now_.measuring_outside && !check && check.error().code == ErrorCode::out_of_range;
    const Take take =
        choose(desired_.power_cap.has_value(), check, wait || unreadable(desired_, Lever::cap),
               plan_.held.cap, plan_.refusals);
    bool differs = false;
    for (const PowerZone& zone : now_.zones) {
      if (!hardware::limitable(zone)) continue;
      std::vector<hardware::AttributeWrite> writes;
      if (take == Take::desired) {
        const std::int64_t slack = input_.cap_changed ? 0 : hardware::kLimitTolerance_uw;
        const bool keep = now_.measuring_outside && zone.enabled;
        const std::int64_t limit_uw = keep ? std::min(share_uw, zone.limit_uw) : share_uw;
        writes = hardware::limit_changes(zone, limit_uw, true, slack);
      }
      const bool owed = input_.held.owed.owes(zone.id);
      if (owed_take(take, owed) == Take::original) {
        if (const auto* original = original_.zone(zone.id)) {
          writes = hardware::limit_changes(zone, original->limit_uw, original->enabled, 0);
        }
      }
      if (owed && writes.empty()) std::erase(plan_.held.owed.zones, zone.id);
      differs |= !writes.empty();
      std::move(writes.begin(), writes.end(), std::back_inserter(plan_.writes));
    }
    if (take == Take::original && !differs) plan_.held.cap = false;
  }

  void plan_uncore() {
    const Take take = choose(
        desired_.max_uncore.has_value(),
        desired_.max_uncore ? hardware::check_max_uncore(now_.uncore, *desired_.max_uncore) : ok(),
        unreadable(desired_, Lever::uncore), plan_.held.uncore, plan_.refusals);
    std::size_t writes = 0, known = 0;
    for (const hardware::UncoreDie& die : now_.uncore) {
      const UncoreSettings* original = original_.die(die.id);
      if (original != nullptr) ++known;
      std::int64_t min_khz = die.min_khz, max_khz = die.max_khz;
      if (take == Take::desired) {
        max_khz = hardware::uncore_step_khz(*desired_.max_uncore);
        min_khz = std::min(original != nullptr ? original->min_khz : min_khz, max_khz);
      } else if (take == Take::original && original != nullptr) {
        min_khz = original->min_khz;
        max_khz = original->max_khz;
      }
      for (auto& write : hardware::uncore_changes(die, min_khz, max_khz)) {
        plan_.writes.push_back(std::move(write));
        ++writes;
      }
    }
    // Held as long as a die is away: it comes back with the limits that it went with.
    const bool all_here = known == original_.uncore.size();
    if (take == Take::original && writes == 0 && all_here) plan_.held.uncore = false;
  }

  const DesiredSettings& desired_;
  const MachineState& now_;
  const Original& original_;
  const PlanInput& input_;
  std::string lost_governor_;
  Plan plan_;
};

std::int64_t whole_watts_up(std::int64_t uw) {
  return (uw + 999'999) / 1'000'000;
}

}  // namespace

Plan make_plan(const PlanInput& input) {
  return Planner(input).run();
}

Held difference(const MachineState& now, const Original& original) {
  Held held;
  for (const CpuPolicy& policy : now.cpu.policies) {
    const PolicySettings* was = original.policy(policy.index);
    if (was == nullptr) continue;
    held.governor |= policy.governor != was->governor;
    held.frequency |= policy.min_khz != was->min_khz || policy.max_khz != was->max_khz;
    held.preference |= policy.epp != was->epp;
  }
  for (const PowerZone& zone : now.zones) {
    const ZoneSettings* was = original.zone(zone.id);
    if (was == nullptr) continue;
    held.cap |= zone.limit_uw != was->limit_uw || zone.enabled != was->enabled;
  }
  for (const hardware::UncoreDie& die : now.uncore) {
    const UncoreSettings* was = original.die(die.id);
    if (was == nullptr) continue;
    held.uncore |= die.min_khz != was->min_khz || die.max_khz != was->max_khz;
  }
  return held;
}

void refresh_original(Original& original, const MachineState& now, const Held& held) {
  const Original present = capture(now, original.boot_id);
  for (const PolicySettings& settings : present.policies) {
    const auto known =
        std::lower_bound(original.policies.begin(), original.policies.end(), settings.index,
                         [](const PolicySettings& p, int index) { return p.index < index; });
    if (known == original.policies.end() || known->index != settings.index) {
      original.policies.insert(known, settings);
      continue;
    }
    if (held.owed.owes(settings.index)) continue;
    if (!held.governor) known->governor = settings.governor;
    if (!held.frequency) {
      known->min_khz = settings.min_khz;
      known->max_khz = settings.max_khz;
    }
    // Our governor may have changed the preference as a side effect.
    if (!held.preference && !held.governor) known->epp = settings.epp;
  }
  for (const ZoneSettings& settings : present.zones) {
    const auto known = std::find_if(original.zones.begin(), original.zones.end(),
                                    [&](const ZoneSettings& z) { return z.id == settings.id; });
    if (known == original.zones.end()) {
      original.zones.push_back(settings);
    } else if (!held.cap && !held.owed.owes(settings.id)) {
      *known = settings;
    }
  }
  for (const UncoreSettings& settings : present.uncore) {
    const auto known = std::find_if(original.uncore.begin(), original.uncore.end(),
                                    [&](const UncoreSettings& d) { return d.id == settings.id; });
    if (known == original.uncore.end()) {
      original.uncore.push_back(settings);
    } else if (!held.uncore) {
      *known = settings;
    }
  }
}

CapRange cap_range(const MachineState& now, const Original& original) {
  std::vector<PowerZone> zones = now.zones;
  for (PowerZone& zone : zones) {
    if (const auto* was = original.zone(zone.id)) zone.limit_uw = was->limit_uw;
  }
  const auto range = hardware::package_range(zones);
  if (!range) return {};
  const std::int64_t outside_uw = now.non_package.value_or(Milliwatts{0}).count() * 1000;
  return {.min_watts = whole_watts_up(range->min_uw + outside_uw),
          .max_watts = (range->max_uw + outside_uw) / 1'000'000};
}

std::int64_t effective_cap_watts(const MachineState& now, const DesiredSettings& desired) {
  const auto range = hardware::package_range(now.zones);
  if (!desired.power_cap || !range || now.measuring_outside) return 0;
  const std::int64_t outside_uw = now.non_package.value_or(Milliwatts{0}).count() * 1000;
  const std::int64_t total_uw = hardware::package_limit_uw(now.zones) + outside_uw;
  const std::int64_t wanted_uw = desired.power_cap->count() * 1000;
  if (std::abs(total_uw - wanted_uw) <= range->packages * hardware::kLimitTolerance_uw) {
    return desired.power_cap->count() / 1000;
  }
  return (total_uw + 500'000) / 1'000'000;
}

}  // namespace kwatt::agent
