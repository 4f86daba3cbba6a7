#pragma once
// One run of dynamic consolidation: a day of traces on a fleet under a policy.
#include <functional>

#include "base/result.hpp"
#include "planner/consolidation/fleet.hpp"
#include "simulator/consolidation/metrics.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::consolidation {

enum class Start {
  first_fit,    // each VM on the first host with room
  power_aware,  // on the one whose power it raises least
};

struct Setup {
  planner::consolidation::Fleet fleet;  // VMs without hosts
  Start start = Start::power_aware;
  double seconds = 86'400;
};

// Called after each decision, before the moves begin.
using Observer = std::function<void(double seconds, const planner::consolidation::Fleet& fleet,
                                    const std::vector<planner::consolidation::Move>& moves)>;

// VMs are placed by their size, in order, before anything is known of their load; decisions follow
// every step, the first one step after the start. Deterministic. invalid_argument: a VM that fits
// no host, a move that the policy may not make, or numbers of columns that are not that of VMs.
// `memory` may be null: then only CPU counts once a VM is placed.
Result<Metrics> run(const Setup& setup, const traces::Series& cpu, const traces::Series* memory,
                    planner::consolidation::Policy& policy, const Observer& observer = {});

}  // namespace kwatt::simulator::consolidation
