#pragma once
// One minute of a machine's samples as a row of the history. Pure.
#include <string>
#include <vector>

#include "telemetry/history_rows.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::telemetry {

// Means over the readings of [minute, minute + 1 min), and the largest power among them, with its
// newest source; nullopt: nothing measured the machine's load.
std::optional<SampleRow> sample_row(const std::string& node, const std::vector<Reading>& readings,
                                    TimePoint minute);

}  // namespace kwatt::telemetry
