#pragma once
// The energy of one policy: what its nodes draw now, what they would draw without kwatt, and what
// was saved since the policy exists. Pure. The sums live in EnergyPolicy.status, so a restarted
// controller goes on where the last written status ends.
#include <string>
#include <vector>

#include "planner/snapshot.hpp"

namespace kwatt::reconcilers {

// Where an account stands: the powers hold from `at` until the next pass.
struct EnergyAccount {
  std::optional<TimePoint> at;  // nullopt: nothing was seen yet
  api::PowerSummary power;
  std::int64_t saved_milliwatt_seconds = 0, saved_micrograms_co2 = 0;  // rests below one unit
};
EnergyAccount account_of(const api::EnergyPolicyStatus& status);

// Power of the selected nodes in `snapshot`; the sums are those of `before`.
api::PowerSummary power_of(const planner::Snapshot& snapshot,
                           const std::vector<planner::NodeName>& selected,
                           const api::PowerSummary& before);

// `before` with its powers held until `now`, at a carbon intensity of so many grams per
// kilowatt-hour (0: not known, then grams are neither added nor shown). Passes are due every
// `interval`; of a gap longer than two of them, and than a minute, no saving is claimed.
EnergyAccount held_until(EnergyAccount before, TimePoint now, Duration interval,
                         std::int64_t grams_per_kwh);

}  // namespace kwatt::reconcilers
