#pragma once
// The power meter of the whole machine, where it has one (ACPI power_meter through hwmon).
#include <optional>
#include <string>

#include "base/units.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

// The attribute to read: power1_average, else power1_input, of the first hwmon device that measures
// the whole machine. Meters of single parts (GPU, drive, voltage regulator) do not count.
// nullopt: there is none. Errors: of the files.
Result<std::optional<std::string>> find_power_meter(const HostFs& fs);

// Errors: of the file; parse; out_of_range for what no machine draws (0, above 100 kW).
Result<Milliwatts> read_power_meter(const HostFs& fs, const std::string& path);

}  // namespace kwatt::hardware
