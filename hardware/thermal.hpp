#pragma once
// CPU temperatures as Linux shows them under class/thermal and class/hwmon.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

// The attributes that say how hot the CPU packages are, one for each package: thermal zones of type
// x86_pkg_temp; without such the first sensor of the hwmon drivers coretemp, k10temp and zenpower;
// without those the thermal zones named after the CPU, as on ARM. Zones of the board or of a radio
// do not count. Empty: there is none.
std::vector<std::string> find_cpu_temperatures(const HostFs& fs);

// The highest reading in thousandths of a degree Celsius. What cannot be read (a package that went
// offline) or is no temperature of a running CPU (below 0, above 150 °C) is left out; nullopt:
// nothing is left.
std::optional<std::int64_t> hottest(const HostFs& fs, const std::vector<std::string>& paths);

}  // namespace kwatt::hardware
