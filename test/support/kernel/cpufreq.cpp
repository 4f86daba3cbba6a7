#include "test/support/kernel/cpufreq.hpp"

#include <algorithm>
#include <cerrno>
#include <strings.h>
#include <utility>

namespace kernel_rules {
namespace {

const std::string kCpu = "devices/system/cpu";
constexpr unsigned kStep = 200'000;

struct Preference {
  const char* word;
  unsigned value;
};
constexpr std::array<Preference, 5> kPreferences{{{"default", 128},
                                                  {"performance", 0},
                                                  {"balance_performance", 128},
                                                  {"balance_power", 192},
                                                  {"power", 255}}};

std::string folder(int policy) {
  return kCpu + "/cpufreq/policy" + std::to_string(policy);
}

std::string line(unsigned long long number) {
  return std::to_string(number) + "\n";
}

}  // namespace

CpuFreq::CpuFreq(Tree& tree, CpuSpec spec) : tree_(tree), spec_(std::move(spec)) {
  cpus_.resize(static_cast<std::size_t>(spec_.cpus));
  for (int cpu = 0; cpu < spec_.cpus; ++cpu) build_cpu(cpu);
  for (int cpu = 0; cpu < spec_.cpus; cpu += spec_.cpus_per_policy) {
    Policy policy;
    policy.first = cpu;
    policies_.push_back(policy);
  }
  build_global();
  register_driver(spec_.driver);
}

bool CpuFreq::package_online(int package) const {
  for (int cpu = 0; cpu < spec_.cpus; ++cpu) {
    if (package_of(cpu) == package && online(cpu)) return true;
  }
  return false;
}

// --- what the hardware has ---------------------------------------------------------------------

std::vector<std::string> CpuFreq::governors() const {
  if (setpolicy()) return {"performance", "powersave"};
  return {"conservative", "ondemand", "userspace", "powersave", "performance", "schedutil"};
}

unsigned CpuFreq::cpuinfo_max() const {
  // intel_pstate goes on naming the turbo frequency although no_turbo forbids it.
  if (driver_ == "acpi-cpufreq") return boost_ ? spec_.turbo_khz : spec_.base_khz;
  return spec_.turbo_khz;
}

// The table of acpi-cpufreq ends at the base frequency: turbo is the hardware's own business.
std::vector<unsigned> CpuFreq::steps() const {
  std::vector<unsigned> steps;
  if (driver_ != "acpi-cpufreq") return steps;
  for (unsigned khz = spec_.base_khz; khz >= spec_.min_khz; khz -= kStep) steps.push_back(khz);
  return steps;
}

// User space's wishes are kept as they are; these are in force (cpufreq_set_policy).
CpuFreq::Limits CpuFreq::limits(const Policy& policy) const {
  Limits in_force{policy.min_request, policy.max_request};
  unsigned high = cpuinfo_max();
  if (driver_.starts_with("intel") && no_turbo_) high = spec_.base_khz;
  if (driver_ == "intel_cpufreq") {  // in passive mode the percentage is one more request
    in_force.max = std::min(in_force.max, spec_.turbo_khz / 100 * max_perf_pct_);
  }
  in_force.max = std::clamp(in_force.max, spec_.min_khz, high);
  in_force.min = std::min(std::max(in_force.min, spec_.min_khz), in_force.max);
  const auto table = steps();
  if (table.empty()) return in_force;
  unsigned low_step = table.front(), high_step = table.back();
  for (const unsigned step : table) {
    if (step >= in_force.min) low_step = std::min(low_step, step);
    if (step <= in_force.max) high_step = std::max(high_step, step);
  }
  return {std::min(low_step, high_step), high_step};
}

std::vector<int> CpuFreq::online_cpus(const Policy& policy) const {
  std::vector<int> cpus;
  for (int cpu = policy.first; cpu < policy.first + spec_.cpus_per_policy; ++cpu) {
    if (cpu < spec_.cpus && online(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string CpuFreq::cpu_list(const Policy& policy, bool only_online) const {
  std::string text;
  for (int cpu = policy.first; cpu < policy.first + spec_.cpus_per_policy; ++cpu) {
    if (cpu >= spec_.cpus || !cpus_[static_cast<std::size_t>(cpu)].present) continue;
    if (only_online && !online(cpu)) continue;
    text += (text.empty() ? "" : " ") + std::to_string(cpu);
  }
  return text + "\n";
}

unsigned CpuFreq::current(const Policy& policy) const {
  const Limits in_force = limits(policy);
  if (policy.governor == "performance") return in_force.max;
  if (policy.governor == "powersave" && !setpolicy()) return in_force.min;
  if (policy.governor == "userspace") {
    return std::clamp(policy.speed_khz, in_force.min, in_force.max);
  }
  return in_force.min + (in_force.max - in_force.min) / 2;
}

// --- the files ---------------------------------------------------------------------------------

std::string CpuFreq::set_of(bool Cpu::*which) const {
  std::string text;
  for (int cpu = 0; cpu < spec_.cpus;) {
    if (!(cpus_[static_cast<std::size_t>(cpu)].*which)) {
      ++cpu;
      continue;
    }
    int end = cpu;
    while (end + 1 < spec_.cpus && cpus_[static_cast<std::size_t>(end + 1)].*which) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpu);
    if (end > cpu) text += "-" + std::to_string(end);
    cpu = end + 1;
  }
  return text + "\n";
}

void CpuFreq::build_cpu(int cpu) {
  const std::string base = kCpu + "/cpu" + std::to_string(cpu);
  tree_.add(base + "/topology/physical_package_id", constant(line(package_of(cpu))));
  tree_.add(base + "/topology/core_id", constant(line(cpu)));
  tree_.link(base + "/cpufreq", "../cpufreq/policy" + std::to_string(cpu / spec_.cpus_per_policy *
                                                                     spec_.cpus_per_policy));
  if (cpu == 0) return;  // x86 keeps the boot CPU
  tree_.add(base + "/online",
            {.mode = 0644,
             .show =
                 [this, cpu] {
                   return Answer{0, online(cpu) ? "1\n" : "0\n"};
                 },
             .store = [this, cpu](const std::string& text) { return set_online(cpu, text); }});
}

void CpuFreq::build_global() {
  for (const char* name : {"online", "present", "possible"}) {
    const bool only_online = std::string(name) == "online";
    tree_.add(kCpu + "/" + name,
              {.mode = 0444,
               .show =
                   [this, only_online] {
                     return Answer{0, set_of(only_online ? &Cpu::online : &Cpu::present)};
                   },
               .store = {}});
  }
  const auto number = [](auto& value) { return [&value] { return Answer{0, line(value)}; }; };
  if (spec_.driver == "acpi-cpufreq") {
    tree_.add(kCpu + "/cpufreq/boost",
              {.mode = 0644, .show = number(boost_), .store = [this](const std::string& text) {
                 const auto value = scan_unsigned(text);
                 if (!value || *value > 1) return EINVAL;
                 boost_ = *value == 1;
                 return 0;
               }});
  }
  if (spec_.driver.starts_with("intel")) {
    const std::string base = kCpu + "/intel_pstate";
    tree_.add(base + "/no_turbo",
              {.mode = 0644, .show = number(no_turbo_), .store = [this](const std::string& text) {
                 const auto value = scan_unsigned(text);
                 if (!value) return EINVAL;
                 no_turbo_ = *value != 0;
                 return 0;
               }});
    tree_.add(
        base + "/max_perf_pct",
        {.mode = 0644, .show = number(max_perf_pct_), .store = [this](const std::string& text) {
           const auto value = scan_unsigned(text);
           if (!value) return EINVAL;
           max_perf_pct_ = std::clamp(*value, 21U, 100U);
           return 0;
         }});
    tree_.add(base + "/min_perf_pct", constant("21\n"));
  }
  if (!spec_.driver.starts_with("intel") && !spec_.driver.starts_with("amd")) return;
  const std::string status =
      spec_.driver.starts_with("intel") ? "/intel_pstate/status" : "/amd_pstate/status";
  tree_.add(kCpu + status, {.mode = 0644,
                            .show =
                                [this] {
                                  if (driver_.empty()) return Answer{0, "off\n"};
                                  return Answer{0, setpolicy() ? "active\n" : "passive\n"};
                                },
                            .store = [this](const std::string& text) { return set_status(text); }});
}

// All policies of the old driver go, those of the new one come with its defaults.
void CpuFreq::register_driver(const std::string& driver) {
  driver_ = driver;
  for (Policy& policy : policies_) {
    tree_.remove(folder(policy.first));
    policy.exists = false;
    if (!driver_.empty() && !online_cpus(policy).empty()) build_policy(policy);
  }
}

void CpuFreq::add(const Policy& policy, const std::string& file, std::function<std::string()> show,
                  std::function<int(const std::string&)> store, int mode) {
  Attribute attribute;
  attribute.mode = mode != 0 ? mode : store ? 0644 : 0444;
  attribute.show = [this, &policy, show = std::move(show)] {
    if (online_cpus(policy).empty()) return Answer{spec_.inactive_error};
    return Answer{0, show()};
  };
  if (store) {
    attribute.store = [this, &policy, store = std::move(store)](const std::string& text) {
      return online_cpus(policy).empty() ? spec_.inactive_error : store(text);
    };
  }
  tree_.add(folder(policy.first) + "/" + file, std::move(attribute));
}

void CpuFreq::build_policy(Policy& policy) {
  policy.exists = true;
  policy.governor = setpolicy() ? "powersave" : "schedutil";
  policy.min_request = spec_.min_khz;
  policy.max_request = steps().empty() ? spec_.turbo_khz : steps().front();
  policy.epp = policy.epp_powersave = 128;
  policy.speed_khz = policy.max_request;
  const auto request = [](unsigned& value) {
    return [&value](const std::string& text) {
      const auto khz = kstrtoull(text, 0);
      if (!khz || *khz > 0x7fffffff) return EINVAL;
      value = static_cast<unsigned>(*khz);  // whatever it is: the limits clamp it
      return 0;
    };
  };
  add(policy, "affected_cpus", [this, &policy] { return cpu_list(policy, true); });
  add(policy, "related_cpus", [this, &policy] { return cpu_list(policy, false); });
  add(policy, "cpuinfo_min_freq", [this] { return line(spec_.min_khz); });
  add(policy, "cpuinfo_max_freq", [this] { return line(cpuinfo_max()); });
  add(policy, "cpuinfo_transition_latency", [] { return std::string("20000\n"); });
  add(policy, "scaling_driver", [this] { return driver_ + "\n"; });
  add(policy, "scaling_available_governors", [this] {
    std::string words;
    for (const std::string& word : governors()) words += word + " ";
    return words + "\n";
  });
  add(
      policy, "scaling_governor", [&policy] { return policy.governor + "\n"; },
      [this, &policy](const std::string& text) { return set_governor(policy, text); });
  add(
      policy, "scaling_min_freq", [this, &policy] { return line(limits(policy).min); },
      request(policy.min_request));
  add(
      policy, "scaling_max_freq", [this, &policy] { return line(limits(policy).max); },
      request(policy.max_request));
  add(policy, "scaling_cur_freq", [this, &policy] { return line(current(policy)); });
  add(
      policy, "scaling_setspeed",
      [&policy] {
        return policy.governor == "userspace" ? line(policy.speed_khz) : "<unsupported>\n";
      },
      [&policy](const std::string& text) {
        const auto khz = scan_unsigned(text);
        if (policy.governor != "userspace" || !khz) return EINVAL;
        policy.speed_khz = *khz;
        return 0;
      });
  if (!steps().empty()) {
    add(policy, "scaling_available_frequencies", [this] {
      std::string words;
      for (const unsigned khz : steps()) words += std::to_string(khz) + " ";
      return words + "\n";
    });
  }
  if (!has_epp()) return;
  add(policy, "energy_performance_available_preferences", [] {
    std::string words;
    for (const Preference& preference : kPreferences) words += std::string(preference.word) + " ";
    return words + "\n";
  });
  add(
      policy, "energy_performance_preference", [this, &policy] { return show_epp(policy) + "\n"; },
      [this, &policy](const std::string& text) { return set_epp(policy, text); });
}

// --- the stores --------------------------------------------------------------------------------

int CpuFreq::set_governor(Policy& policy, const std::string& buffer) {
  const std::string word = scan_word(buffer, 15);
  for (const std::string& governor : governors()) {
    if (::strcasecmp(governor.c_str(), word.c_str()) != 0) continue;
    const bool was = policy.governor == "performance", is = governor == "performance";
    policy.governor = governor;
    if (!setpolicy() || was == is) return 0;
    if (is) policy.epp_powersave = std::exchange(policy.epp, 0);
    // intel_pstate comes back with what it had, amd-pstate-epp stays where it is.
    if (was && driver_ == "intel_pstate" && policy.epp == 0) policy.epp = policy.epp_powersave;
    return 0;
  }
  return EINVAL;
}

std::string CpuFreq::show_epp(const Policy& policy) const {
  for (const Preference& preference : kPreferences) {
    if (std::string(preference.word) != "default" && preference.value == policy.epp) {
      return preference.word;
    }
  }
  return std::to_string(policy.epp);
}

int CpuFreq::set_epp(Policy& policy, const std::string& buffer) {
  const std::string word = scan_word(buffer, 20);
  std::optional<unsigned> value;
  for (const Preference& preference : kPreferences) {
    if (word == preference.word) value = preference.value;
  }
  if (!value && driver_.starts_with("intel")) {
    const auto raw = kstrtoull(buffer);
    if (raw && *raw <= 255) value = static_cast<unsigned>(*raw);
  }
  if (!value) return EINVAL;
  // Only the drivers that are their own governor force it.
  if (*value > 0 && setpolicy() && policy.governor == "performance") return EBUSY;
  policy.epp = *value;
  return 0;
}

int CpuFreq::set_status(const std::string& buffer) {
  const std::string word = scan_word(buffer, 15);
  const bool intel = spec_.driver.starts_with("intel");
  if (word == (intel ? "off" : "disable")) {
    register_driver("");
  } else if (word == "active") {
    register_driver(intel ? "intel_pstate" : "amd-pstate-epp");
  } else if (word == "passive") {
    register_driver(intel ? "intel_cpufreq" : "amd-pstate");
  } else {
    return EINVAL;
  }
  return 0;
}

int CpuFreq::set_online(int cpu, const std::string& buffer) {
  const auto value = kstrtoull(buffer);
  if (!value || *value > 1) return EINVAL;
  cpus_[static_cast<std::size_t>(cpu)].online = *value == 1;
  Policy& policy = policies_[static_cast<std::size_t>(cpu / spec_.cpus_per_policy)];
  // A policy is kept while its CPUs are offline, and comes back with its old settings.
  if (*value == 1 && !policy.exists && !driver_.empty()) build_policy(policy);
  if (listener_) listener_();
  return 0;
}

void CpuFreq::unplug(int cpu) {
  cpus_.at(static_cast<std::size_t>(cpu)) = {false, false};
  tree_.remove(kCpu + "/cpu" + std::to_string(cpu));
  Policy& policy = policies_[static_cast<std::size_t>(cpu / spec_.cpus_per_policy)];
  if (cpu_list(policy, false) == "\n") {
    tree_.remove(folder(policy.first));
    policy.exists = false;
  }
  if (listener_) listener_();
}

void CpuFreq::plug(int cpu) {
  cpus_.at(static_cast<std::size_t>(cpu)) = {true, true};
  build_cpu(cpu);
  Policy& policy = policies_[static_cast<std::size_t>(cpu / spec_.cpus_per_policy)];
  if (!policy.exists && !driver_.empty()) build_policy(policy);
  if (listener_) listener_();
}

}  // namespace kernel_rules
