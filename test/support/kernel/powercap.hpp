#pragma once
// The rules of drivers/powercap (intel_rapl) and of intel_uncore_frequency, with the sensors beside
// them: hwmon's power_meter and thermal zones.
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "test/support/kernel/cpufreq.hpp"
#include "test/support/kernel/tree.hpp"

namespace kernel_rules {

struct PowerSpec {
  bool rapl = true, dram = true, psys = false, mmio = false, hwmon = false, uncore = false;
  std::int64_t package_limit_uw = 165'000'000, package_watts = 60, dram_watts = 5, rest_watts = 35;
  std::int64_t range_uj = 262'143'328'850;
};

class PowerCap {
 public:
  // `seconds` is the machine's clock. Both outlive this.
  PowerCap(Tree& tree, const CpuFreq& cpus, PowerSpec spec, int packages,
           std::function<double()> seconds);

  // Zones of packages without an online CPU go, those of others come.
  void cpus_changed();
  void lock(bool locked) { locked_ = locked; }
  // The firmware keeps limits below this, whatever is stored; 0: it does not care.
  void clamp(std::int64_t most_uw) { most_uw_ = most_uw; }
  // Sets a counter ("intel-rapl:0").
  void set_energy(const std::string& zone, std::int64_t energy_uj);
  void set_temperature(int package, int milli_celsius) { temperature_[package] = milli_celsius; }

 private:
  struct Counter {
    double watts = 0;
    double offset_uj = 0;
  };
  struct Limit {
    std::int64_t long_uw = 0, short_uw = 0;
    bool enabled = true;
  };

  void build_zone(const std::string& type, const std::string& path, const std::string& name,
                  double watts);
  void build_limits(const std::string& base, int package);
  void build_uncore(int package);
  void build_sensors();
  std::int64_t energy(const std::string& zone) const;
  double machine_watts() const;

  Tree& tree_;
  const CpuFreq& cpus_;
  PowerSpec spec_;
  int packages_;
  std::function<double()> seconds_;
  bool locked_ = false;
  std::int64_t most_uw_ = 0;
  std::map<std::string, Counter> counters_;
  std::map<int, Limit> limits_;
  std::map<int, bool> built_;
  std::map<int, std::int64_t> uncore_min_khz_, uncore_max_khz_;
  std::map<int, int> temperature_;
};

}  // namespace kernel_rules
