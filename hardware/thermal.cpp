#include "hardware/thermal.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

const std::string kZones = "class/thermal";
const std::string kSensors = "class/hwmon";
constexpr std::array<std::string_view, 3> kCpuSensors{"coretemp", "k10temp", "zenpower"};
constexpr std::int64_t kHottest = 150'000;

std::vector<std::string> devices(const HostFs& fs, const std::string& base) {
  auto names = fs.list(base);
  return names ? std::move(*names) : std::vector<std::string>{};
}

// The readings of the devices whose `file` says one of the words.
template <class Predicate>
std::vector<std::string> readings(const HostFs& fs, const std::string& base, const char* file,
                                  const char* reading, Predicate wanted) {
  std::vector<std::string> paths;
  for (const std::string& device : devices(fs, base)) {
    const auto word = read_line(fs, fmt::format("{}/{}/{}", base, device, file));
    if (word && wanted(*word)) paths.push_back(fmt::format("{}/{}/{}", base, device, reading));
  }
  return paths;
}

}  // namespace

std::vector<std::string> find_cpu_temperatures(const HostFs& fs) {
  auto paths = readings(fs, kZones, "type", "temp",
                        [](const std::string& type) { return type == "x86_pkg_temp"; });
  if (!paths.empty()) return paths;
  paths = readings(fs, kSensors, "name", "temp1_input", [](const std::string& name) {
    return std::find(kCpuSensors.begin(), kCpuSensors.end(), name) != kCpuSensors.end();
  });
  if (!paths.empty()) return paths;
  return readings(fs, kZones, "type", "temp",
                  [](const std::string& type) { return type.starts_with("cpu"); });
}

std::optional<std::int64_t> hottest(const HostFs& fs, const std::vector<std::string>& paths) {
  std::optional<std::int64_t> highest;
  for (const std::string& path : paths) {
    const auto reading = read_number(fs, path);
    if (reading && *reading <= kHottest) highest = std::max(highest.value_or(0), *reading);
  }
  return highest;
}

}  // namespace kwatt::hardware
