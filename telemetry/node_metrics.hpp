#pragma once
// CPU utilization from the list of NodeMetrics (metrics.k8s.io/v1beta1). Pure.
#include <string_view>

#include "telemetry/source.hpp"

namespace kwatt::telemetry {

// Busy fraction = usage ÷ allocatable CPU; work outside of what pods may use can only fill it up to
// 1. The frequency is not known, so the frequency-invariant utilization is taken to be the same:
// too high on a slowed node, which keeps its frequency from falling further.
// Errors: parse (not such a list), not_found (a list without nodes).
Result<Fetched> read_node_metrics(std::string_view json, const NodeDirectory& nodes, TimePoint now,
                                  Duration period);

}  // namespace kwatt::telemetry
