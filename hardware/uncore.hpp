#pragma once
// Limits of the uncore frequency (mesh, last-level cache, memory controllers) of Intel processors,
// as the kernel's intel_uncore_frequency driver shows them in
// devices/system/cpu/intel_uncore_frequency/ (kernel document admin-guide/pm/
// intel_uncore_frequency_scaling). PURE but for the file system passed in.
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

// A die, or with newer processors (TPMI) what the driver shows as one.
struct UncoreDie {
  std::string id;  // the folder: "package_00_die_00"
  std::int64_t min_khz = 0, max_khz = 0;
  std::int64_t hardware_min_khz = 0, hardware_max_khz = 0;  // as the driver found them
  bool operator==(const UncoreDie&) const = default;
};

// By id; none where there is no such driver. A die whose CPUs are all offline answers nothing and
// is left out. Where the driver shows dies and the clusters inside them, the dies are taken: a
// store to a die goes to its clusters.
Result<std::vector<UncoreDie>> read_uncore(const HostFs& fs);

// What all dies can do; nullopt without any.
struct UncoreRange {
  Megahertz min{0}, max{0};
};
std::optional<UncoreRange> uncore_range(const std::vector<UncoreDie>& dies);

// Errors: unsupported (no such driver), out_of_range with the range in the message.
Result<void> check_max_uncore(const std::vector<UncoreDie>& dies, Megahertz wanted);

// The step of 100 MHz that the hardware makes of it, not above `wanted`.
std::int64_t uncore_step_khz(Megahertz wanted);

// The stores that lead from `now` to these limits, in an order that never has min above max; none
// if they are so already.
std::vector<AttributeWrite> uncore_changes(const UncoreDie& now, std::int64_t min_khz,
                                           std::int64_t max_khz);

// The folder of a die's attributes, relative to /sys, with a slash at its end.
std::string uncore_folder(const std::string& id);

}  // namespace kwatt::hardware
