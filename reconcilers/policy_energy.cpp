#include "reconcilers/policy_energy.hpp"

#include <algorithm>

#include "planner/draw.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr std::string_view kBaseline =
    "the machines that kwatt switched off idle, those it slowed down or capped at their normal "
    "frequency, all with the load they have now; the others as they are";

}  // namespace

EnergyAccount account_of(const api::EnergyPolicyStatus& status) {
  return {status.last_pass.time, status.power, status.memory.saved_milliwatt_seconds,
          status.memory.saved_micrograms_co2};
}

api::PowerSummary power_of(const planner::Snapshot& snapshot,
                           const std::vector<planner::NodeName>& selected,
                           const api::PowerSummary& before) {
  api::PowerSummary power = before;
  power.measured_milliwatts = power.estimated_milliwatts = power.baseline_milliwatts = 0;
  for (const auto& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    const planner::Draw draw = planner::draw_of(found->second, snapshot.now);
    (draw.measured() ? power.measured_milliwatts : power.estimated_milliwatts) +=
        draw.power.actual.count();
    power.baseline_milliwatts += draw.power.baseline.count();
  }
  power.baseline = kBaseline;
  power.watts = (power.measured_milliwatts + power.estimated_milliwatts + 500) / 1000;
  return power;
}

EnergyAccount held_until(EnergyAccount account, TimePoint now, Duration interval,
                         std::int64_t grams_per_kwh) {
  api::PowerSummary& power = account.power;
  if (account.at) {
    const models::PowerPair pair{Milliwatts{power.measured_milliwatts + power.estimated_milliwatts},
                                 Milliwatts{power.baseline_milliwatts}};
    const Duration longest = std::max<Duration>(std::chrono::minutes{1}, 2 * interval);
    const Millijoules saved = models::saved_over(pair, now - *account.at, longest);
    const models::Whole hours =
        models::carry({power.saved_watt_hours, account.saved_milliwatt_seconds}, saved.count(),
                      models::kMillijoulesPerWattHour);
    power.saved_watt_hours = hours.units;
    account.saved_milliwatt_seconds = hours.rest;
    if (grams_per_kwh > 0) {
      const models::Whole grams =
          models::carry({power.saved_grams_co2.value_or(0), account.saved_micrograms_co2},
                        models::micrograms_co2(saved, grams_per_kwh), models::kMicrogramsPerGram);
      power.saved_grams_co2 = grams.units;
      account.saved_micrograms_co2 = grams.rest;
    }
  }
  if (grams_per_kwh > 0 && !power.saved_grams_co2) power.saved_grams_co2 = 0;
  account.at = now;
  return account;
}

}  // namespace kwatt::reconcilers
