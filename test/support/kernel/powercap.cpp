#include "test/support/kernel/powercap.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace kernel_rules {
namespace {

constexpr std::int64_t kUnit_uw = 125'000;  // of a limit: 1/8 W
constexpr std::int64_t kField = 0x7fff;     // and its field has 15 bits
constexpr std::int64_t kUncoreStep_khz = 100'000;

Answer number(std::int64_t value) {
  return {0, std::to_string(value) + "\n"};
}

}  // namespace

PowerCap::PowerCap(Tree& tree, const CpuFreq& cpus, PowerSpec spec, int packages,
                   std::function<double()> seconds)
    : tree_(tree), cpus_(cpus), spec_(spec), packages_(packages), seconds_(std::move(seconds)) {
  for (int package = 0; package < packages_; ++package) {
    limits_[package] = {spec_.package_limit_uw, spec_.package_limit_uw * 5 / 4, true};
    uncore_min_khz_[package] = 800'000;
    uncore_max_khz_[package] = 2'400'000;
    temperature_[package] = 45'000;
  }
  if (spec_.rapl) {
    for (const char* type : {"intel-rapl", "intel-rapl-mmio"}) {
      if (std::string(type) == "intel-rapl-mmio" && !spec_.mmio) continue;
      tree_.add(fmt::format("devices/virtual/powercap/{}/enabled", type), constant("1\n"));
      tree_.link(fmt::format("class/powercap/{}", type),
                 fmt::format("../../devices/virtual/powercap/{}", type));
    }
    if (spec_.psys) {
      build_zone("intel-rapl", fmt::format("intel-rapl:{}", packages_), "psys", machine_watts());
    }
    if (spec_.mmio) {
      build_zone("intel-rapl-mmio", "intel-rapl-mmio:0", "package-0",
                 static_cast<double>(spec_.package_watts));
      build_limits("devices/virtual/powercap/intel-rapl-mmio/intel-rapl-mmio:0", 0);
    }
  }
  build_sensors();
  cpus_changed();
}

double PowerCap::machine_watts() const {
  return static_cast<double>((spec_.package_watts + spec_.dram_watts) * packages_ +
                             spec_.rest_watts);
}

void PowerCap::cpus_changed() {
  for (int package = 0; package < packages_; ++package) {
    const bool wanted = cpus_.package_online(package);
    if (std::exchange(built_[package], wanted) == wanted) continue;
    const std::string zone = fmt::format("intel-rapl:{}", package);
    if (!wanted) {
      tree_.remove("class/powercap/" + zone);
      tree_.remove("class/powercap/" + zone + ":0");
      tree_.remove("devices/virtual/powercap/intel-rapl/" + zone);
      continue;
    }
    if (spec_.uncore) build_uncore(package);
    if (!spec_.rapl) continue;
    build_zone("intel-rapl", zone, fmt::format("package-{}", package),
               static_cast<double>(spec_.package_watts));
    build_limits("devices/virtual/powercap/intel-rapl/" + zone, package);
    if (spec_.dram) {
      build_zone("intel-rapl", fmt::format("{}/{}:0", zone, zone), "dram",
                 static_cast<double>(spec_.dram_watts));
    }
  }
}

std::int64_t PowerCap::energy(const std::string& zone) const {
  const Counter& counter = counters_.at(zone);
  return static_cast<std::int64_t>(std::fmod(counter.offset_uj + counter.watts * 1e6 * seconds_(),
                                             static_cast<double>(spec_.range_uj)));
}

void PowerCap::set_energy(const std::string& zone, std::int64_t energy_uj) {
  Counter& counter = counters_.at(zone);
  counter.offset_uj =
      static_cast<double>(energy_uj + spec_.range_uj) -
      std::fmod(counter.watts * 1e6 * seconds_(), static_cast<double>(spec_.range_uj));
}

void PowerCap::build_zone(const std::string& type, const std::string& path, const std::string& name,
                          double watts) {
  const std::string zone =
      path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  const std::string base = fmt::format("devices/virtual/powercap/{}/{}", type, path);
  tree_.link("class/powercap/" + zone, "../../" + base);
  counters_.try_emplace(zone, Counter{watts, 5e9});
  tree_.add(base + "/name", constant(name + "\n"));
  tree_.add(base + "/max_energy_range_uj", constant(std::to_string(spec_.range_uj) + "\n"));
  tree_.add(base + "/energy_uj",
            {.mode = 0400, .show = [this, zone] { return number(energy(zone)); }, .store = {}});
  if (name.starts_with("package")) return;
  // Zones without a limit of their own still have the switch.
  tree_.add(base + "/enabled", {.mode = 0644,
                                .show =
                                    [] {
                                      return Answer{0, "0\n"};
                                    },
                                .store = [](const std::string&) { return ENOSYS; }});
}

void PowerCap::build_limits(const std::string& base, int package) {
  tree_.add(base + "/enabled", {.mode = 0644,
                                .show =
                                    [this, package] {
                                      // get_domain_enable: a locked domain says that it is off.
                                      return number(!locked_ && limits_[package].enabled ? 1 : 0);
                                    },
                                .store =
                                    [this, package](const std::string& text) {
                                      const std::string word = scan_word(text, 8);
                                      if (word != "0" && word != "1") return EINVAL;
                                      if (locked_) return ENOSYS;
                                      limits_[package].enabled = word == "1";
                                      return 0;
                                    }});
  const struct {
    const char* name;
    std::int64_t Limit::*value;
    std::int64_t window_us;
  } constraints[] = {{"long_term", &Limit::long_uw, 999'424},
                     {"short_term", &Limit::short_uw, 2'440}};
  for (int i = 0; i < 2; ++i) {
    const auto& constraint = constraints[i];
    const auto file = [&](const char* what) {
      return fmt::format("{}/constraint_{}_{}", base, i, what);
    };
    tree_.add(file("name"), constant(std::string(constraint.name) + "\n"));
    tree_.add(file("max_power_uw"), constant(std::to_string(spec_.package_limit_uw) + "\n"));
    tree_.add(file("time_window_us"), constant(std::to_string(constraint.window_us) + "\n"));
    tree_.add(file("power_limit_uw"),
              {.mode = 0644,
               .show = [this, package,
                        value = constraint.value] { return number(limits_[package].*value); },
               .store =
                   [this, package, value = constraint.value](const std::string& text) {
                     const auto uw = kstrtoull(text);
                     if (!uw) return EINVAL;
                     if (locked_) return ENODATA;
                     // In whole units of the hardware; what does not fit its field is cut off.
                     std::int64_t raw = (static_cast<std::int64_t>(*uw) / kUnit_uw) & kField;
                     if (most_uw_ > 0) raw = std::min(raw, most_uw_ / kUnit_uw);
                     limits_[package].*value = raw * kUnit_uw;
                     return 0;
                   }});
  }
}

// A die whose CPUs are all offline keeps its files, and they answer ENXIO.
void PowerCap::build_uncore(int package) {
  const std::string base =
      fmt::format("devices/system/cpu/intel_uncore_frequency/package_{:02}_die_00", package);
  const auto khz = [&](const char* file, std::map<int, std::int64_t>& values) {
    tree_.add(base + "/" + file,
              {.mode = 0644,
               .show =
                   [this, package, &values] {
                     return cpus_.package_online(package) ? number(values[package]) : Answer{ENXIO};
                   },
               .store =
                   [this, package, &values](const std::string& text) {
                     const auto value = kstrtoull(text);
                     if (!value) return EINVAL;
                     if (!cpus_.package_online(package)) return ENXIO;
                     const auto ratio = static_cast<std::int64_t>(*value) / kUncoreStep_khz;
                     if (ratio == 0 || ratio > 0x7f) return EINVAL;
                     values[package] = ratio * kUncoreStep_khz;
                     return 0;
                   }});
  };
  khz("min_freq_khz", uncore_min_khz_);
  khz("max_freq_khz", uncore_max_khz_);
  tree_.add(base + "/initial_min_freq_khz", constant("800000\n"));
  tree_.add(base + "/initial_max_freq_khz", constant("2400000\n"));
}

void PowerCap::build_sensors() {
  const auto zone = [this](int index, const std::string& type, std::function<Answer()> show) {
    const std::string base = fmt::format("devices/virtual/thermal/thermal_zone{}", index);
    tree_.add(base + "/type", constant(type + "\n"));
    tree_.add(base + "/temp", {.mode = 0444, .show = std::move(show), .store = {}});
    tree_.link(fmt::format("class/thermal/thermal_zone{}", index), "../../" + base);
  };
  zone(0, "acpitz", [] { return Answer{0, "27800\n"}; });
  for (int package = 0; package < packages_; ++package) {
    zone(package + 1, "x86_pkg_temp", [this, package] { return number(temperature_[package]); });
  }
  if (!spec_.hwmon) return;
  const std::string base = "devices/LNXSYSTM:00/ACPI000D:00/hwmon/hwmon0";
  tree_.add(base + "/name", constant("power_meter\n"));
  tree_.add(base + "/power1_average",
            {.mode = 0444,
             .show = [this] { return number(static_cast<std::int64_t>(machine_watts() * 1e6)); },
             .store = {}});
  tree_.link("class/hwmon/hwmon0", "../../" + base);
}

}  // namespace kernel_rules
