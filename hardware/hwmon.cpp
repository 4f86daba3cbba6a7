#include "hardware/hwmon.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

const std::string kBase = "class/hwmon";
// Drivers whose power1 is the machine's input: ACPI meters, and OpenPOWER's service processor.
constexpr std::array<std::string_view, 2> kWholeMachine{"power_meter", "ibmpowernv"};
constexpr std::int64_t kImplausible_uw = 100'000'000'000;

}  // namespace

Result<std::optional<std::string>> find_power_meter(const HostFs& fs) {
  auto devices = fs.list(kBase);
  if (!devices) {
    if (devices.error().code == ErrorCode::not_found) return std::optional<std::string>{};
    return devices.error();
  }
  for (const std::string& device : *devices) {
    const auto name = read_line(fs, fmt::format("{}/{}/name", kBase, device));
    if (!name) continue;  // removed meanwhile, or a device without a name
    if (std::find(kWholeMachine.begin(), kWholeMachine.end(), *name) == kWholeMachine.end()) {
      continue;
    }
    for (const char* file : {"power1_average", "power1_input"}) {
      std::string path = fmt::format("{}/{}/{}", kBase, device, file);
      if (read_line(fs, path)) return std::optional<std::string>{std::move(path)};
    }
  }
  return std::optional<std::string>{};
}

Result<Milliwatts> read_power_meter(const HostFs& fs, const std::string& path) {
  auto microwatts = read_number(fs, path);
  if (!microwatts) return microwatts.error();
  if (*microwatts <= 0 || *microwatts > kImplausible_uw) {
    return fail(ErrorCode::out_of_range,
                fmt::format("{}: {} µW is not what a machine draws", path, *microwatts));
  }
  return Milliwatts{*microwatts / 1000};
}

}  // namespace kwatt::hardware
