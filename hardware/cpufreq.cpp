#include "hardware/cpufreq.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::hardware {
namespace {

const std::string kBase = "devices/system/cpu/cpufreq";
const std::string kOnline = "devices/system/cpu/online";
constexpr std::string_view kPerformance = "performance";
constexpr std::int64_t kMaximumPreferenceNumber = 255;

std::string path_of(int index, std::string_view file) {
  return fmt::format("{}/policy{}/{}", kBase, index, file);
}

// Errors that mean "this policy has no online CPU (any more)", not "this file is broken".
bool gone(const Error& error) {
  return error.code == ErrorCode::not_found || error.code == ErrorCode::unavailable ||
         error.code == ErrorCode::invalid_argument;
}

struct PolicyFiles {
  CpuPolicy policy;
  std::string driver;
  std::vector<std::string> governors, preferences;
};

std::int64_t current_khz(const HostFs& fs, int index) {
  // "<unknown>", EAGAIN and a missing file all mean the same: the driver cannot tell now.
  const auto khz = read_number(fs, path_of(index, "scaling_cur_freq"));
  return khz ? *khz : 0;
}

// Online CPUs of a policy; 0: none, or none any more.
Result<int> online_cpus(const HostFs& fs, int index) {
  auto cpus = read_words(fs, path_of(index, "affected_cpus"));
  if (cpus) return static_cast<int>(cpus->size());
  if (gone(cpus.error())) return 0;
  return cpus.error();
}

// Ascending; the kernel lists them either way. Most drivers have no steps.
std::vector<std::int64_t> read_steps(const HostFs& fs, int index) {
  std::vector<std::int64_t> steps;
  const auto words = read_words(fs, path_of(index, "scaling_available_frequencies"));
  if (!words) return steps;
  for (const std::string& word : *words) {
    if (const auto khz = parse_number(word)) steps.push_back(*khz);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Result<PolicyFiles> read_policy(const HostFs& fs, int index, int cpus) {
  PolicyFiles files;
  CpuPolicy& policy = files.policy;
  policy.index = index;
  policy.cpus = cpus;

  auto governor = read_line(fs, path_of(index, "scaling_governor"));
  if (!governor) return governor.error();
  policy.governor = *governor;
  auto driver = read_line(fs, path_of(index, "scaling_driver"));
  if (!driver) return driver.error();
  files.driver = *driver;
  auto governors = read_words(fs, path_of(index, "scaling_available_governors"));
  if (!governors) return governors.error();
  files.governors = std::move(*governors);

  const struct {
    std::string_view file;
    std::int64_t* value;
  } numbers[] = {{"cpuinfo_min_freq", &policy.hardware_min_khz},
                 {"cpuinfo_max_freq", &policy.hardware_max_khz},
                 {"scaling_min_freq", &policy.min_khz},
                 {"scaling_max_freq", &policy.max_khz}};
  for (const auto& number : numbers) {
    auto value = read_number(fs, path_of(index, number.file));
    if (!value) return value.error();
    *number.value = *value;
  }
  policy.current_khz = current_khz(fs, index);
  policy.steps_khz = read_steps(fs, index);
  // Where the driver is the governor, `performance` is a preference too. intel_cpufreq is not.
  policy.performance_forces_epp =
      files.driver == "intel_pstate" || files.driver == "amd-pstate-epp";

  auto preference = read_line(fs, path_of(index, "energy_performance_preference"));
  if (preference) {
    policy.epp = *preference;
    auto words = read_words(fs, path_of(index, "energy_performance_available_preferences"));
    if (words) files.preferences = std::move(*words);
  }
  return files;
}

void keep_common(std::vector<std::string>& words, const std::vector<std::string>& others) {
  std::erase_if(words, [&](const std::string& word) {
    return std::find(others.begin(), others.end(), word) == others.end();
  });
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const char* no_scaling(const CpuFrequencies& frequencies) {
  return frequencies.problems.empty() ? "this machine has no CPU frequency scaling"
                                      : "the CPU frequency settings of this machine cannot be read";
}

AttributeWrite store(int index, std::string_view file, std::string value, std::string_view what) {
  return {.path = path_of(index, file),
          .value = std::move(value),
          .what = fmt::format("{} of policy{}", what, index)};
}

// The kernel shows another word than was written for "default" and for numbers that have a name.
bool chosen_by_kernel(const std::string& preference) {
  return preference == "default" || parse_number(preference).has_value();
}

bool needs_preference(const CpuPolicy& now, const CpuPolicy& wanted, const std::string& shown) {
  if (wanted.epp.empty() || now.epp.empty()) return false;
  if (wanted.governor == kPerformance && now.performance_forces_epp) return false;
  if (now.governor != wanted.governor) return true;
  if (chosen_by_kernel(wanted.epp) && now.epp == shown) return false;
  return now.epp != wanted.epp;
}

}  // namespace

Result<CpuFrequencies> read_cpufreq(const HostFs& fs) {
  CpuFrequencies all;
  // Before the policies: a CPU that comes meanwhile makes the next look differ.
  if (auto online = read_line(fs, kOnline)) all.online = std::move(*online);
  auto names = fs.list(kBase);
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return all;
    return names.error();
  }
  std::vector<int> indexes;
  for (const std::string& name : *names) {
    if (!name.starts_with("policy")) continue;
    if (const auto index = parse_number(std::string_view(name).substr(6))) {
      indexes.push_back(static_cast<int>(*index));
    }
  }
  std::sort(indexes.begin(), indexes.end());
  for (const int index : indexes) {
    auto cpus = online_cpus(fs, index);
    if (cpus && *cpus == 0) continue;
    auto files = cpus ? read_policy(fs, index, *cpus) : Result<PolicyFiles>(cpus.error());
    if (!files) {
      // It may have gone offline meanwhile; otherwise somebody has to hear of it.
      if (const auto still = online_cpus(fs, index); still && *still == 0) continue;
      all.problems.push_back(
          files.error().with_context(fmt::format("policy{} is left out", index)).text());
      continue;
    }
    if (all.policies.empty()) {
      all.driver = files->driver;
      all.governors = std::move(files->governors);
      all.preferences = std::move(files->preferences);
    } else {
      keep_common(all.governors, files->governors);
      keep_common(all.preferences, files->preferences);
    }
    all.policies.push_back(std::move(files->policy));
  }
  return all;
}

bool refresh_settings(const HostFs& fs, CpuFrequencies& known) {
  if (known.policies.empty() || !known.problems.empty() || known.online.empty()) return false;
  const auto online = read_line(fs, kOnline);
  if (!online || *online != known.online) return false;
  for (CpuPolicy& policy : known.policies) {
    auto governor = read_line(fs, path_of(policy.index, "scaling_governor"));
    const auto min_khz = read_number(fs, path_of(policy.index, "scaling_min_freq"));
    const auto max_khz = read_number(fs, path_of(policy.index, "scaling_max_freq"));
    if (!governor || !min_khz || !max_khz) return false;
    policy.governor = std::move(*governor);
    policy.min_khz = *min_khz;
    policy.max_khz = *max_khz;
    if (policy.epp.empty()) continue;
    auto preference = read_line(fs, path_of(policy.index, "energy_performance_preference"));
    if (!preference) return false;
    policy.epp = std::move(*preference);
  }
  return true;
}

Megahertz average_frequency(const HostFs& fs, const CpuFrequencies& known) {
  std::int64_t sum = 0, cpus = 0;
  for (const CpuPolicy& policy : known.policies) {
    const std::int64_t khz = current_khz(fs, policy.index);
    if (khz == 0) continue;
    sum += khz * policy.cpus;
    cpus += policy.cpus;
  }
  return Megahertz{cpus == 0 ? 0 : sum / cpus / 1000};
}

CpuSummary summarize(const CpuFrequencies& frequencies) {
  CpuSummary summary;
  if (frequencies.policies.empty()) return summary;
  std::set<std::string> governors, preferences;
  const CpuPolicy& first = frequencies.policies.front();
  std::int64_t low = first.min_khz, high = first.max_khz;
  std::int64_t hardware_low = first.hardware_min_khz, hardware_high = first.hardware_max_khz;
  std::int64_t sum = 0, cpus = 0;
  for (const CpuPolicy& policy : frequencies.policies) {
    governors.insert(policy.governor);
    preferences.insert(policy.epp);
    low = std::min(low, policy.min_khz);
    high = std::max(high, policy.max_khz);
    hardware_low = std::min(hardware_low, policy.hardware_min_khz);
    hardware_high = std::max(hardware_high, policy.hardware_max_khz);
    if (policy.current_khz > 0) {
      sum += policy.current_khz * policy.cpus;
      cpus += policy.cpus;
    }
  }
  summary.governor = fmt::format("{}", fmt::join(governors, ","));
  summary.epp = fmt::format("{}", fmt::join(preferences, ","));
  summary.min = Megahertz{low / 1000};
  summary.max = Megahertz{high / 1000};
  summary.current = Megahertz{cpus == 0 ? 0 : sum / cpus / 1000};
  summary.hardware_min = Megahertz{hardware_low / 1000};
  summary.hardware_max = Megahertz{hardware_high / 1000};
  return summary;
}

Result<void> check_governor(const CpuFrequencies& frequencies, const std::string& governor) {
  if (frequencies.policies.empty()) {
    return fail(ErrorCode::unsupported, no_scaling(frequencies));
  }
  if (contains(frequencies.governors, governor)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("governor {} is not offered by {}: choose one of {}", governor,
                          frequencies.driver, fmt::join(frequencies.governors, ", ")));
}

Result<void> check_max_frequency(const CpuFrequencies& frequencies, Megahertz maximum) {
  if (frequencies.policies.empty()) {
    return fail(ErrorCode::unsupported, no_scaling(frequencies));
  }
  const CpuSummary summary = summarize(frequencies);
  if (maximum >= summary.hardware_min && maximum <= summary.hardware_max) return {};
  return fail(
      ErrorCode::out_of_range,
      fmt::format("maximum frequency {} MHz is outside the hardware's {} to {} MHz",
                  maximum.count(), summary.hardware_min.count(), summary.hardware_max.count()));
}

Result<void> check_preference(const CpuFrequencies& frequencies, const std::string& preference,
                              const std::string& governor) {
  const bool offered = std::any_of(frequencies.policies.begin(), frequencies.policies.end(),
                                   [](const CpuPolicy& policy) { return !policy.epp.empty(); });
  if (!offered) {
    return fail(ErrorCode::unsupported,
                frequencies.policies.empty()
                    ? std::string(no_scaling(frequencies))
                    : fmt::format("{} has no energy performance preference", frequencies.driver));
  }
  const auto number = parse_number(preference);
  if (number ? *number > kMaximumPreferenceNumber
             : !contains(frequencies.preferences, preference)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("energy performance preference {} is not offered: choose one of {}, or "
                            "a number from 0 to {}",
                            preference, fmt::join(frequencies.preferences, ", "),
                            kMaximumPreferenceNumber));
  }
  const bool forced = std::any_of(
      frequencies.policies.begin(), frequencies.policies.end(), [&](const CpuPolicy& policy) {
        return policy.performance_forces_epp &&
               (governor.empty() ? policy.governor : governor) == kPerformance;
      });
  if (forced && preference != kPerformance) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("energy performance preference {} cannot be had under the performance "
                            "governor, which forces its own",
                            preference));
  }
  return {};
}

std::int64_t policy_khz(const CpuPolicy& policy, Megahertz limit) {
  const std::int64_t mhz = limit.count();
  std::int64_t khz = mhz * 1000;
  if (mhz >= policy.hardware_max_khz / 1000) khz = policy.hardware_max_khz;
  if (mhz <= policy.hardware_min_khz / 1000) khz = policy.hardware_min_khz;
  const auto& steps = policy.steps_khz;
  if (steps.empty()) return khz;
  // A step of 1733333 kHz is what somebody means who asks for 1733 MHz.
  const auto above = std::upper_bound(steps.begin(), steps.end(), khz / 1000 * 1000 + 999);
  return above == steps.begin() ? steps.front() : *std::prev(above);
}

std::vector<AttributeWrite> changes(const CpuPolicy& now, const CpuPolicy& wanted,
                                    const std::string& shown) {
  std::vector<AttributeWrite> writes;
  const int index = now.index;
  const std::int64_t min_khz = std::min(wanted.min_khz, wanted.max_khz);
  const auto limit = [&](std::string_view file, std::int64_t khz, std::string_view what) {
    writes.push_back(store(index, file, std::to_string(khz), what));
    writes.back().tolerance = 1000;
  };
  // Kernels before 5.4 answer EINVAL to a maximum below the minimum in force.
  const bool minimum_first = wanted.max_khz < now.min_khz;
  if (minimum_first) limit("scaling_min_freq", min_khz, "minimum frequency");
  if (now.governor != wanted.governor) {
    writes.push_back(store(index, "scaling_governor", wanted.governor, "governor"));
  }
  if (now.max_khz != wanted.max_khz) limit("scaling_max_freq", wanted.max_khz, "maximum frequency");
  if (!minimum_first && now.min_khz != min_khz) {
    limit("scaling_min_freq", min_khz, "minimum frequency");
  }
  if (needs_preference(now, wanted, shown)) {
    writes.push_back(
        store(index, "energy_performance_preference", wanted.epp, "energy performance preference"));
    writes.back().any_word = chosen_by_kernel(wanted.epp);
  }
  return writes;
}

std::string policy_folder(int index) {
  return path_of(index, "");
}

bool same_settings(const CpuPolicy& now, const CpuPolicy& wanted, const std::string& shown) {
  constexpr std::int64_t kTolerance = 1000;
  if (now.governor != wanted.governor) return false;
  if (std::abs(now.max_khz - wanted.max_khz) > kTolerance) return false;
  if (std::abs(now.min_khz - std::min(wanted.min_khz, wanted.max_khz)) > kTolerance) return false;
  return !needs_preference(now, wanted, shown);
}

}  // namespace kwatt::hardware
