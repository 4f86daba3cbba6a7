#pragma once
// Our own format of machines: CSV with a header.
//   required: name, cpu, memory_mib
//   optional: count, gpu, zone, idle_w, max_w, curve_w, boot_s, boot_j, shutdown_s, standby_w,
//             min_mhz, max_mhz
// With count above 1 machines are called name-1, name-2 … curve_w: the 11 watts at 0, 10 … 100 %
// load, separated by blanks; else a line from idle_w to max_w; else a server of its size
// (models/power_curve.hpp). Also machines as one word: COUNTxCORESxGIB[xGPUS][@ZONE].
#include "simulator/machine.hpp"
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

inline constexpr std::size_t kMostMachines = 1'000'000;

// Errors: parse, with the place. A wrong row is always an error: work on other machines would be
// other work.
Result<std::vector<MachineSpec>> read_machines(std::istream& in, const std::string& name);

// "40x32x128@DE,10x64x256x4": boot 120 s, shutdown 30 s, standby 5 W, the default curve. Errors:
// invalid_argument.
Result<std::vector<MachineSpec>> parse_machines(std::string_view text);

}  // namespace kwatt::simulator::traces
