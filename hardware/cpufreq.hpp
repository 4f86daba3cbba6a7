#pragma once
// CPU frequency scaling as Linux shows it under devices/system/cpu/cpufreq/policyN. Reading is one
// pass over the files; what to write is computed from values alone and performed by the caller.
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

// One frequency domain: the CPUs that share a clock. Frequencies in kHz, as the kernel gives them.
struct CpuPolicy {
  int index = 0;
  int cpus = 1;  // online CPUs in it: its weight in averages
  std::string governor;
  std::string epp;  // energy performance preference; "": the driver has none
  std::int64_t min_khz = 0, max_khz = 0;
  std::int64_t current_khz = 0;  // 0: unknown
  std::int64_t hardware_min_khz = 0, hardware_max_khz = 0;
  bool operator==(const CpuPolicy&) const = default;
};

struct CpuFrequencies {
  std::string driver;                    // acpi-cpufreq, intel_pstate, …; "": no scaling here
  std::vector<CpuPolicy> policies;       // by index; those of offline CPUs are left out
  std::vector<std::string> governors;    // offered by every policy
  std::vector<std::string> preferences;  // EPP words offered by every policy; empty: no EPP
  bool operator==(const CpuFrequencies&) const = default;
};

// A machine without cpufreq (most virtual ones) gives an empty value, not an error.
// Errors: of the files; a policy that goes offline meanwhile is left out.
Result<CpuFrequencies> read_cpufreq(const HostFs& fs);

// Average present frequency over all CPUs; 0: unknown. Cheaper than read_cpufreq: one file per
// policy of `known`.
Megahertz average_frequency(const HostFs& fs, const CpuFrequencies& known);

// The whole machine in one line for reports. Where policies differ: governors and preferences as
// "performance,powersave", limits as the lowest minimum and the highest maximum.
struct CpuSummary {
  std::string governor, epp;
  Megahertz min, max, current, hardware_min, hardware_max;
  bool operator==(const CpuSummary&) const = default;
};
CpuSummary summarize(const CpuFrequencies& frequencies);

// Whether the hardware can do it at all. The kernel would clamp a frequency silently, so this must
// be asked first. Errors, with what is offered in the message: unsupported, invalid_argument (not
// one of the words), out_of_range (frequency outside the hardware's range).
Result<void> check_governor(const CpuFrequencies& frequencies, const std::string& governor);
Result<void> check_max_frequency(const CpuFrequencies& frequencies, Megahertz maximum);
// `governor` is the one that will be in force: under `performance` the kernel answers EBUSY to
// every preference but `performance`.
Result<void> check_preference(const CpuFrequencies& frequencies, const std::string& preference,
                              const std::string& governor);

// The limit of one policy for a limit of the machine. On machines with different cores a value
// beyond a policy's own range means its own limit; megahertz equal to a hardware limit mean exactly
// that limit (it need not be a whole number of MHz).
std::int64_t policy_khz(const CpuPolicy& policy, Megahertz limit);

// The stores that lead from `now` to `wanted` (governor, epp, min_khz, max_khz), in an order that
// the kernel accepts: never a maximum below the minimum in force, preference after governor.
// Empty: nothing to do.
std::vector<AttributeWrite> changes(const CpuPolicy& now, const CpuPolicy& wanted);

// True when the settings (not the present frequency) are as wanted, as far as they can be read
// back.
bool same_settings(const CpuPolicy& now, const CpuPolicy& wanted);

}  // namespace kwatt::hardware
