#pragma once
// The form that PlanetLab's and Google's VM traces share here: a first line of VM names in bytewise
// order, then one line per step with a percentage for each VM.
#include <istream>
#include <limits>
#include <string_view>

#include "base/result.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::traces {

struct PercentRules {
  bool whole = false;  // digits only
  double above = 100;  // what is more than this is an error …
  bool clip = false;   // … or counts as `above`
};

// Reads line by line. `name` stands in messages, as file:line. ErrorCode::parse: no names, a name
// that is empty, repeated or out of order; a line with too few or too many values; a value that is
// missing, not a number, negative or above the rules' greatest; no line of values at all.
Result<Series> read_percent_table(std::istream& in, std::string_view name,
                                  const PercentRules& rules);

}  // namespace kwatt::simulator::traces
