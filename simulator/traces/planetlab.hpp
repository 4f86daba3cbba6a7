#pragma once
// PlanetLab's CPU traces of 2011 (CoMoN), as packed for the evaluation: one CSV a day, a column per
// VM, a line per 5 minutes, whole percent of the VM's own CPU. Cite Beloglazov and Buyya, CCPE
// 24(13), 2012.
#include <istream>
#include <string_view>

#include "base/result.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::traces {

// Errors: percent_table.hpp. `name` is what messages call the input.
Result<Series> read_planetlab(std::istream& in, std::string_view name);

}  // namespace kwatt::simulator::traces
