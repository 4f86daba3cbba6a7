#pragma once
// From the outcome of a pass to EnergyPolicy.status. Pure: the same input gives the same status, so
// that an unchanged status is not written.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan.hpp"
#include "reconcilers/policy_energy.hpp"
#include "telemetry/carbon_state.hpp"

namespace kwatt::reconcilers {

// What one policy's visit came to.
struct PolicyOutcome {
  std::vector<std::string> problems;  // of validate(); not empty: not accepted
  bool enforcing = false;             // mode Enforce, not suspended, accepted
  bool releasing = false;             // still giving back what it held
  std::vector<planner::NodeName> selected;
  std::vector<planner::Assignment::Loss> lost;
  planner::Plan plan;
  std::vector<api::MigrationStatus> migrations;  // in flight and the newest finished ones
  std::string last_action;                       // "" : keep what stands
  Duration pass_duration{0};
  // The account of the last pass in this process; nullopt: that of the status, which is written
  // less often than there are passes.
  std::optional<EnergyAccount> account;
  std::int64_t carbon_grams_per_kwh = 0;         // 0: not known
  std::vector<std::string> telemetry_problems;   // of sources that fail now, a sentence each
  std::optional<telemetry::CarbonState> carbon;  // of spec.carbon.source; nullopt: not looked at
};

// The complete next status, starting from what stands now (transition times, energy sums).
// `now` also stamps lastPass.
api::EnergyPolicyStatus policy_status(const api::EnergyPolicy& policy,
                                      const planner::Snapshot& snapshot,
                                      const PolicyOutcome& outcome);

// True when `next` is worth a write: anything but the pass times, a few watts and the energy sums
// changed, or the last write is older than `refresh`.
bool worth_writing(const api::EnergyPolicyStatus& written, const api::EnergyPolicyStatus& next,
                   Duration refresh);

}  // namespace kwatt::reconcilers
