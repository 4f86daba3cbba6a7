#pragma once
// CPU time and the identity of a boot, from procfs.
#include <optional>
#include <string>

#include "base/units.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

// Ticks since boot, summed over all CPUs.
struct CpuTimes {
  std::int64_t busy = 0, total = 0;
  bool operator==(const CpuTimes&) const = default;
};

// The "cpu" line of <proc>/stat. Waiting for I/O is idle; guest time is part of user time already.
// Errors: of the file; parse.
Result<CpuTimes> read_cpu_times(const HostFs& proc);

// The busy fraction between two readings; nullopt when no tick passed or the counters fell.
std::optional<Permille> busy_between(const CpuTimes& before, const CpuTimes& after);

// Busy fraction × average frequency ÷ maximum frequency: what the load would be at full speed, so
// that it does not change because we changed the frequency. Unknown frequencies leave it as it is.
Permille frequency_invariant(Permille busy, Megahertz average, Megahertz maximum);

// <proc>/sys/kernel/random/boot_id. Errors: of the file; parse if it is empty or too long.
Result<std::string> read_boot_id(const HostFs& proc);

}  // namespace kwatt::hardware
