#pragma once
// The rules of drivers/cpufreq (Linux 6.1 to 6.12) for the files below devices/system/cpu.
#include <array>
#include <string>
#include <vector>

#include "test/support/kernel/tree.hpp"

namespace kernel_rules {

struct CpuSpec {
  // acpi-cpufreq, intel_pstate (active), intel_cpufreq (intel_pstate passive), amd-pstate
  // (passive), amd-pstate-epp (active); "": no cpufreq
  std::string driver = "acpi-cpufreq";
  int cpus = 4;
  int cpus_per_policy = 1;
  int packages = 1;
  // What the files of a policy without an online CPU answer: EBUSY since 5.19, before that EINVAL.
  int inactive_error = 16;
  unsigned min_khz = 800'000, base_khz = 3'200'000, turbo_khz = 3'800'000;
};

class CpuFreq {
 public:
  CpuFreq(Tree& tree, CpuSpec spec);

  bool online(int cpu) const { return cpus_.at(static_cast<std::size_t>(cpu)).online; }
  bool package_online(int package) const;
  // Surprise removal and return of a CPU, as a hypervisor or a hot-plug board does it.
  void unplug(int cpu);
  void plug(int cpu);
  // Called when a CPU came or went.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }
  int package_of(int cpu) const { return cpu * spec_.packages / spec_.cpus; }

 private:
  struct Cpu {
    bool present = true, online = true;
  };
  struct Policy {
    int first = 0;
    bool exists = false;
    std::string governor;
    unsigned min_request = 0, max_request = 0;  // of user space; what is in force is computed
    unsigned epp = 128, epp_powersave = 128;
    unsigned speed_khz = 0;
  };
  struct Limits {
    unsigned min = 0, max = 0;
  };

  bool has_epp() const { return driver_.starts_with("intel") || driver_ == "amd-pstate-epp"; }
  bool setpolicy() const { return driver_ == "intel_pstate" || driver_ == "amd-pstate-epp"; }
  std::vector<std::string> governors() const;
  unsigned cpuinfo_max() const;
  std::vector<unsigned> steps() const;
  Limits limits(const Policy& policy) const;
  std::vector<int> online_cpus(const Policy& policy) const;
  std::string cpu_list(const Policy& policy, bool only_online) const;
  unsigned current(const Policy& policy) const;

  void build_cpu(int cpu);
  void build_global();
  void register_driver(const std::string& driver);
  void build_policy(Policy& policy);
  void add(const Policy& policy, const std::string& file, std::function<std::string()> show,
           std::function<int(const std::string&)> store = {}, int mode = 0);
  int set_governor(Policy& policy, const std::string& buffer);
  std::string show_epp(const Policy& policy) const;
  int set_epp(Policy& policy, const std::string& buffer);
  int set_online(int cpu, const std::string& buffer);
  int set_status(const std::string& buffer);
  std::string set_of(bool Cpu::*which) const;

  Tree& tree_;
  CpuSpec spec_;
  std::string driver_;
  std::vector<Cpu> cpus_;
  std::vector<Policy> policies_;
  bool boost_ = true, no_turbo_ = false;
  unsigned max_perf_pct_ = 100;
  std::function<void()> listener_;
};

}  // namespace kernel_rules
