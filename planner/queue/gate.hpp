#pragma once
// All queues of a cluster at once: who passes the gate now. Pure: the live queue asks it with a
// snapshot of the caches, tests with one made by hand.
//
// A queue is an EnergyPolicy: its placement.strategy chooses, among the nodes that it selects; its
// carbon says whose forecast counts and how long a job may be held back at most. In a policy that
// is missing, suspended or only recommends nothing is released: the reason says so.
#include <functional>
#include <optional>

#include "api/energy_policy.hpp"
#include "planner/queue/gated_jobs.hpp"

namespace kwatt::planner::queue {

// A zone's expected carbon intensity; no values: not known, and nothing waits for it.
struct Outlook {
  TimePoint start{};
  Duration step = std::chrono::hours{1};
  std::vector<double> grams_per_kwh;
  // Its source is being asked for the first time: who may wait does, or each start of the
  // controller would release all that waits for a clean hour.
  bool pending = false;
};
// Of the policy's source, which is not empty. `zone` is spec.carbon.zone, or, where that is empty,
// each node's own topology.kubernetes.io/zone.
using OutlookOf = std::function<Outlook(const api::CarbonSpec& carbon, const std::string& zone)>;

struct Decided {
  GatedJob gated;
  std::string strategy;  // "" without a policy
  Verdict verdict;
  std::vector<std::string> nodes;  // names of verdict.nodes: by member, as gated.pods
};

struct GateQuestion {
  std::vector<std::shared_ptr<const api::EnergyPolicy>> policies;
  OutlookOf outlook;  // empty: nothing is known
  Released released;
  bool release_all = false;
};

// Queues with higher priority first, then by name; in each the jobs by arrival.
std::vector<Decided> decide_all(const Snapshot& snapshot, const GateQuestion& question);

}  // namespace kwatt::planner::queue
