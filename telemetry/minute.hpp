#pragma once
// One minute of a machine's samples as a row of the history. Pure.
#include <string>
#include <vector>

#include "telemetry/history_rows.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::telemetry {

// Means over the samples of [minute, minute + 1 min), and the largest power among them; nullopt:
// the machine sent nothing.
std::optional<SampleRow> sample_row(const std::string& node, const std::vector<Sample>& samples,
                                    TimePoint minute);

}  // namespace kwatt::telemetry
