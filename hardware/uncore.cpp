#include "hardware/uncore.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

constexpr std::string_view kBase = "devices/system/cpu/intel_uncore_frequency";
constexpr std::int64_t kStep_khz = 100'000;

// nullopt: it does not answer now.
std::optional<UncoreDie> read_die(const HostFs& fs, const std::string& id) {
  const std::string folder = uncore_folder(id);
  const auto low = read_number(fs, folder + "min_freq_khz");
  const auto high = read_number(fs, folder + "max_freq_khz");
  if (!low || !high) return std::nullopt;
  const auto lowest = read_number(fs, folder + "initial_min_freq_khz");
  const auto highest = read_number(fs, folder + "initial_max_freq_khz");
  return UncoreDie{.id = id,
                   .min_khz = *low,
                   .max_khz = *high,
                   .hardware_min_khz = lowest ? *lowest : *low,
                   .hardware_max_khz = highest ? *highest : *high};
}

AttributeWrite store(const UncoreDie& die, std::string_view file, std::int64_t khz) {
  return {.path = fmt::format("{}{}_freq_khz", uncore_folder(die.id), file),
          .value = std::to_string(khz),
          .what = fmt::format("{}imum uncore frequency of {}", file, die.id)};
}

}  // namespace

std::string uncore_folder(const std::string& id) {
  return fmt::format("{}/{}/", kBase, id);
}

Result<std::vector<UncoreDie>> read_uncore(const HostFs& fs) {
  std::vector<UncoreDie> dies;
  auto names = fs.list(std::string(kBase));
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return dies;
    return names.error();
  }
  const bool by_die = std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return name.starts_with("package_");
  });
  for (const std::string& name : *names) {
    if (!name.starts_with(by_die ? "package_" : "uncore")) continue;
    if (auto die = read_die(fs, name)) dies.push_back(std::move(*die));
  }
  return dies;
}

std::optional<UncoreRange> uncore_range(const std::vector<UncoreDie>& dies) {
  if (dies.empty()) return std::nullopt;
  std::int64_t low = dies.front().hardware_min_khz, high = dies.front().hardware_max_khz;
  for (const UncoreDie& die : dies) {
    low = std::max(low, die.hardware_min_khz);
    high = std::min(high, die.hardware_max_khz);
  }
  return UncoreRange{Megahertz{(low + 999) / 1000}, Megahertz{high / 1000}};
}

Result<void> check_max_uncore(const std::vector<UncoreDie>& dies, Megahertz wanted) {
  const auto range = uncore_range(dies);
  if (!range) {
    return fail(ErrorCode::unsupported,
                "this machine's kernel shows no uncore frequency that could be limited");
  }
  if (wanted < range->min || wanted > range->max) {
    return fail(ErrorCode::out_of_range,
                fmt::format("uncore frequency {} MHz is outside the hardware's {} to {} MHz",
                            wanted.count(), range->min.count(), range->max.count()));
  }
  return {};
}

std::int64_t uncore_step_khz(Megahertz wanted) {
  return wanted.count() * 1000 / kStep_khz * kStep_khz;
}

std::vector<AttributeWrite> uncore_changes(const UncoreDie& now, std::int64_t min_khz,
                                           std::int64_t max_khz) {
  std::vector<AttributeWrite> writes;
  if (now.max_khz != max_khz) writes.push_back(store(now, "max", max_khz));
  if (now.min_khz != min_khz) writes.push_back(store(now, "min", min_khz));
  // The lower limit goes down first, the upper one up first.
  if (writes.size() == 2 && max_khz < now.min_khz) std::swap(writes[0], writes[1]);
  return writes;
}

}  // namespace kwatt::hardware
