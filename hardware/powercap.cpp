#include "hardware/powercap.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

const std::string kBase = "class/powercap";
constexpr std::string_view kMsr = "intel-rapl:";
constexpr std::string_view kMmio = "intel-rapl-mmio:";
constexpr int kMaximumConstraints = 4;
constexpr Duration kLongestGap = std::chrono::minutes{1};
constexpr std::int64_t kImplausible_uw = 10'000'000'000;  // 10 kW in one zone

std::string path_of(const PowerZone& zone, std::string_view file) {
  return fmt::format("{}/{}/{}", kBase, zone.id, file);
}

std::string constraint_file(int constraint, std::string_view what) {
  return fmt::format("constraint_{}_{}", constraint, what);
}

ZoneKind kind_of(std::string_view name) {
  if (name.starts_with("package-")) return ZoneKind::package;
  if (name == "dram") return ZoneKind::dram;
  if (name == "psys") return ZoneKind::psys;
  return ZoneKind::other;
}

std::int64_t number_or_zero(const HostFs& fs, const std::string& path) {
  const auto number = read_number(fs, path);
  return number ? *number : 0;
}

// AMD's zones count energy but have no constraints; a locked limit may not be readable either.
void read_limit(const HostFs& fs, PowerZone& zone) {
  for (int i = 0; i < kMaximumConstraints; ++i) {
    const auto name = read_line(fs, path_of(zone, constraint_file(i, "name")));
    if (!name) return;
    if (*name != "long_term") continue;
    const auto limit = read_number(fs, path_of(zone, constraint_file(i, "power_limit_uw")));
    if (!limit) return;
    zone.constraint = i;
    zone.limit_uw = *limit;
    zone.max_uw = number_or_zero(fs, path_of(zone, constraint_file(i, "max_power_uw")));
    zone.min_uw = number_or_zero(fs, path_of(zone, constraint_file(i, "min_power_uw")));
    zone.enabled = number_or_zero(fs, path_of(zone, "enabled")) == 1;
    return;
  }
}

std::int64_t maximum_of(const PowerZone& zone) {
  return std::max(zone.max_uw, zone.limit_uw);
}

}  // namespace

Result<std::vector<PowerZone>> read_zones(const HostFs& fs) {
  std::vector<PowerZone> zones, duplicates;
  auto names = fs.list(kBase);
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return zones;
    return names.error();
  }
  for (const std::string& id : *names) {
    const bool mmio = id.starts_with(kMmio);
    if (!mmio && !id.starts_with(kMsr)) continue;
    PowerZone zone;
    zone.id = id;
    auto name = read_line(fs, path_of(zone, "name"));
    if (!name) {
      if (name.error().code == ErrorCode::not_found) continue;
      return name.error();
    }
    zone.name = *name;
    zone.kind = kind_of(zone.name);
    zone.energy_range_uj = number_or_zero(fs, path_of(zone, "max_energy_range_uj"));
    read_limit(fs, zone);
    (mmio ? duplicates : zones).push_back(std::move(zone));
  }
  // The memory-mapped interface counts only where the other one shows no package at all.
  const bool packages = std::any_of(zones.begin(), zones.end(), [](const PowerZone& zone) {
    return zone.kind == ZoneKind::package;
  });
  if (!packages) std::move(duplicates.begin(), duplicates.end(), std::back_inserter(zones));
  return zones;
}

bool limitable(const PowerZone& zone) {
  return zone.kind == ZoneKind::package && zone.constraint >= 0;
}

std::optional<PackageRange> package_range(const std::vector<PowerZone>& zones) {
  PackageRange range;
  std::int64_t low = 0, high = 0;  // of one share
  for (const PowerZone& zone : zones) {
    if (!limitable(zone)) continue;
    const std::int64_t max_uw = maximum_of(zone);
    const std::int64_t min_uw = zone.min_uw > 0 ? zone.min_uw : max_uw / 10;
    high = range.packages == 0 ? max_uw : std::min(high, max_uw);
    low = std::max(low, min_uw);
    ++range.packages;
  }
  if (range.packages == 0) return std::nullopt;
  range.min_uw = low * range.packages;
  range.max_uw = high * range.packages;
  return range;
}

std::int64_t package_limit_uw(const std::vector<PowerZone>& zones) {
  std::int64_t sum = 0;
  for (const PowerZone& zone : zones) {
    if (limitable(zone)) sum += zone.enabled ? zone.limit_uw : maximum_of(zone);
  }
  return sum;
}

std::vector<AttributeWrite> limit_changes(const PowerZone& now, std::int64_t limit_uw, bool enabled,
                                          std::int64_t slack_uw) {
  std::vector<AttributeWrite> writes;
  if (now.constraint < 0) return writes;
  if (std::abs(now.limit_uw - limit_uw) > slack_uw) {
    writes.push_back({.path = path_of(now, constraint_file(now.constraint, "power_limit_uw")),
                      .value = std::to_string(limit_uw),
                      .what = "power limit of " + now.name,
                      .tolerance = kLimitTolerance_uw});
  }
  if (now.enabled != enabled) {
    writes.push_back({.path = path_of(now, "enabled"),
                      .value = enabled ? "1" : "0",
                      .what = "power limit switch of " + now.name});
  }
  return writes;
}

std::string zone_folder(const std::string& id) {
  return fmt::format("{}/{}/", kBase, id);
}

Error explain_limit_error(Error error, const AttributeWrite& write) {
  if (error.code == ErrorCode::unsupported && write.path.starts_with(kBase)) {
    error.message = fmt::format("the firmware has locked the {}", write.what);
  }
  return error;
}

std::optional<std::int64_t> energy_between(std::int64_t before, std::int64_t after,
                                           std::int64_t range) {
  if (after >= before) return after - before;
  if (range <= 0 || before > range) return std::nullopt;
  return range - before + after;
}

Result<EnergyMeter::Reading> EnergyMeter::sample(const HostFs& fs,
                                                 const std::vector<PowerZone>& zones,
                                                 MonotonicPoint now) {
  Reading reading;
  std::vector<Counter> counters;
  std::vector<std::optional<Milliwatts>*> incomplete;
  const std::int64_t elapsed_us =
      std::chrono::duration_cast<std::chrono::microseconds>(now - last_time_).count();
  const bool usable = !last_.empty() && elapsed_us > 0 && now - last_time_ <= kLongestGap;
  for (const PowerZone& zone : zones) {
    std::optional<Milliwatts>* sum = nullptr;
    if (zone.kind == ZoneKind::package) sum = &reading.packages;
    if (zone.kind == ZoneKind::dram) sum = &reading.dram;
    if (zone.kind == ZoneKind::psys) sum = &reading.psys;
    if (sum == nullptr) continue;
    auto energy = read_number(fs, path_of(zone, "energy_uj"));
    if (!energy && energy.error().code == ErrorCode::not_found) continue;
    if (!energy) {
      last_.clear();
      return energy.error().with_context("energy counter of " + zone.name);
    }
    counters.push_back({zone.id, *energy});
    const auto before =
        std::find_if(last_.begin(), last_.end(), [&](const Counter& c) { return c.id == zone.id; });
    if (!usable) continue;
    if (before == last_.end()) {
      incomplete.push_back(sum);  // without this zone the sum would be too low
      continue;
    }
    const auto used = energy_between(before->energy_uj, *energy, zone.energy_range_uj);
    // µJ ÷ µs = W. The product below stays far inside 64 bits: a counter is under 10^12.
    if (!used || *used > kImplausible_uw / 1'000'000 * elapsed_us) {
      last_.clear();
      last_time_ = now;
      return Reading{};
    }
    *sum = sum->value_or(Milliwatts{0}) + Milliwatts{*used * 1000 / elapsed_us};
  }
  for (std::optional<Milliwatts>* sum : incomplete) sum->reset();
  last_ = std::move(counters);
  last_time_ = now;
  return reading;
}

}  // namespace kwatt::hardware
