#pragma once
// What no schedule without under-allocation can go below.
#include "planner/consolidation/fleet.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::consolidation {

// Joules from the first step to the last sample, if load could be split at will and hosts switched
// at once and for nothing: at each step CPU goes to the kinds with the least watts per CPU, filled
// to the load where they have it, and memory to those with the least idle watts for it; the larger
// of the two counts. A VM counts until it ends (world.hpp). `memory` may be null.
double lower_bound_joules(const planner::consolidation::Fleet& fleet, const traces::Series& cpu,
                          const traces::Series* memory);

}  // namespace kwatt::simulator::consolidation
