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
  std::vector<std::int64_t> steps_khz = {};  // the limits that can be had, rising; empty: any
  // Under the `performance` governor this driver allows no other preference.
  bool performance_forces_epp = false;
  bool operator==(const CpuPolicy&) const = default;
};

struct CpuFrequencies {
  std::string driver;                    // acpi-cpufreq, intel_pstate, …; "": no scaling here
  std::vector<CpuPolicy> policies;       // by index; those of offline CPUs are left out
  std::vector<std::string> governors;    // offered by every policy
  std::vector<std::string> preferences;  // EPP words offered by every policy; empty: no EPP
  std::vector<std::string> problems =
      {};                   // policies with CPUs that could not be read, as sentences
  std::string online = {};  // the CPUs that were online, "0-3,5"; "": not known
  bool operator==(const CpuFrequencies&) const = default;
};

// A machine without cpufreq (most virtual ones) gives an empty value, not an error.
// Errors: of listing the policies. One that goes offline meanwhile is left out; one that has CPUs
// but not all its files is left out too and named by `problems`.
Result<CpuFrequencies> read_cpufreq(const HostFs& fs);

// Reads only what changes by itself or by other people's hands: governor, limits and preference of
// the policies in `known`. False: CPUs came or went, or a file failed: then `known` is not to be
// used before read_cpufreq() has read it anew. A third of the cost of that.
bool refresh_settings(const HostFs& fs, CpuFrequencies& known);

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
// `governor` is the one that will be in force ("": each policy keeps its own): under `performance`
// some drivers answer EBUSY to every preference but `performance`.
Result<void> check_preference(const CpuFrequencies& frequencies, const std::string& preference,
                              const std::string& governor);

// The limit of one policy for a limit of the machine. On machines with different cores a value
// beyond a policy's own range means its own limit; megahertz equal to a hardware limit mean exactly
// that limit (it need not be a whole number of MHz). Drivers with steps get the highest step that
// is not above the limit, which is what the kernel makes of it.
std::int64_t policy_khz(const CpuPolicy& policy, Megahertz limit);

// The stores that lead from `now` to `wanted` (governor, epp, min_khz, max_khz), in an order that
// the kernel accepts: never a maximum below the minimum in force, preference after governor.
// Empty: nothing to do.
// A preference wanted as a number, or as "default", may be shown as a word of the kernel's choice:
// `shown` is what the policy has shown since it was stored; "": it was not stored yet.
std::vector<AttributeWrite> changes(const CpuPolicy& now, const CpuPolicy& wanted,
                                    const std::string& shown = {});

// Where the files of a policy are: "devices/system/cpu/cpufreq/policy3/".
std::string policy_folder(int index);

// True when the settings (not the present frequency) are as wanted, as far as they can be read
// back.
bool same_settings(const CpuPolicy& now, const CpuPolicy& wanted, const std::string& shown = {});

}  // namespace kwatt::hardware
