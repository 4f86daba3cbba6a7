#pragma once
// Builds the attribute files of one machine in a FakeHostFs, with the kernel's rules for stores
// (clamping of limits, EBUSY for preferences under the performance governor, EINVAL for unknown
// governors, rounding and locking of power limits).
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "test/hardware/fake_host_fs.hpp"

namespace kwatt::hardware {

struct FakeMachine {
  std::string driver = "acpi-cpufreq";
  std::string governors = "conservative ondemand userspace powersave performance schedutil";
  std::string governor = "schedutil";
  std::string preferences = {};  // "": no EPP
  std::int64_t min_khz = 800'000, max_khz = 3'200'000;
  int policies = 2, cpus_per_policy = 2;
  int packages = 1;
  std::int64_t package_limit_uw = 200'000'000;
  bool meter = true;

  void build(FakeHostFs& fs) const {
    for (int i = 0; i < policies; ++i) build_policy(fs, i * cpus_per_policy);
    for (int i = 0; i < packages; ++i) build_package(fs, i);
    if (meter) {
      fs.put("class/hwmon/hwmon1/name", "power_meter\n");
      fs.put("class/hwmon/hwmon1/power1_average", "300000000\n");
    }
  }

  static std::string policy_file(int index, const std::string& file) {
    return fmt::format("devices/system/cpu/cpufreq/policy{}/{}", index, file);
  }
  static std::string zone_file(const std::string& zone, const std::string& file) {
    return fmt::format("class/powercap/{}/{}", zone, file);
  }

 private:
  using Answer = FakeHostFs::Answer;
  static bool word_in(const std::string& words, const std::string& word) {
    std::istringstream in(words);
    for (std::string each; in >> each;) {
      if (each == word) return true;
    }
    return false;
  }

  void build_policy(FakeHostFs& fs, int index) const {
    std::string cpus;
    for (int i = 0; i < cpus_per_policy; ++i) cpus += fmt::format("{} ", index + i);
    const auto file = [&](const std::string& name) { return policy_file(index, name); };
    fs.put(file("affected_cpus"), cpus + "\n");
    fs.put(file("scaling_driver"), driver + "\n");
    fs.put(file("scaling_available_governors"), governors + " \n");
    fs.put(file("scaling_governor"), governor + "\n");
    fs.put(file("cpuinfo_min_freq"), fmt::format("{}\n", min_khz));
    fs.put(file("cpuinfo_max_freq"), fmt::format("{}\n", max_khz));
    fs.put(file("scaling_min_freq"), fmt::format("{}\n", min_khz));
    fs.put(file("scaling_max_freq"), fmt::format("{}\n", max_khz));
    fs.put(file("scaling_cur_freq"), fmt::format("{}\n", max_khz / 2));
    fs.on_write(file("scaling_governor"), [this_governors = governors](const std::string& value) {
      return word_in(this_governors, value) ? Answer{value, 0} : Answer{{}, EINVAL};
    });
    for (const char* limit : {"scaling_min_freq", "scaling_max_freq"}) {
      fs.on_write(file(limit), [low = min_khz, high = max_khz](const std::string& value) {
        return Answer{std::to_string(std::clamp<std::int64_t>(std::stoll(value), low, high)), 0};
      });
    }
    if (preferences.empty()) return;
    fs.put(file("energy_performance_available_preferences"), preferences + " \n");
    fs.put(file("energy_performance_preference"), "balance_performance\n");
    fs.on_write(file("energy_performance_preference"),
                [&fs, path = file("scaling_governor"), words = preferences](const std::string& v) {
                  if (fs.text(path) == "performance\n" && v != "performance") {
                    return Answer{{}, EBUSY};
                  }
                  if (v == "default") return Answer{"balance_performance", 0};
                  if (const auto number = parse_number(v)) {
                    return *number > 255 ? Answer{{}, EINVAL} : Answer{v, 0};
                  }
                  return word_in(words, v) ? Answer{v, 0} : Answer{{}, EINVAL};
                });
  }

  void build_package(FakeHostFs& fs, int package) const {
    const std::string zone = fmt::format("intel-rapl:{}", package);
    const auto file = [&](const std::string& name) { return zone_file(zone, name); };
    fs.put("class/powercap/intel-rapl/enabled", "1\n");
    fs.put(file("name"), fmt::format("package-{}\n", package));
    fs.put(file("energy_uj"), "1000000000\n");
    fs.put(file("max_energy_range_uj"), "262143328850\n");
    fs.put(file("enabled"), "1\n");
    fs.put(file("constraint_0_name"), "long_term\n");
    fs.put(file("constraint_0_power_limit_uw"), fmt::format("{}\n", package_limit_uw));
    fs.put(file("constraint_0_max_power_uw"), fmt::format("{}\n", package_limit_uw));
    fs.put(file("constraint_1_name"), "short_term\n");
    fs.put(file("constraint_1_power_limit_uw"), "250000000\n");
    fs.on_write(file("constraint_0_power_limit_uw"), [](const std::string& value) {
      return Answer{std::to_string(std::stoll(value) / 125'000 * 125'000), 0};
    });
  }
};

}  // namespace kwatt::hardware
