#include "agent/original.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::agent {
namespace {

constexpr std::size_t kMostPolicies = 4096;

// {0,2,3} → "0,2-3"
std::string ranges(const std::vector<int>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    while (end + 1 < sorted.size() && sorted[end + 1] == sorted[end] + 1) ++end;
    parts.push_back(end == i ? std::to_string(sorted[i])
                             : fmt::format("{}-{}", sorted[i], sorted[end]));
    i = end + 1;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::optional<std::vector<int>> parse_ranges(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    const auto low = hardware::parse_number(ends.front());
    const auto high = hardware::parse_number(ends.back());
    if (!low || !high || ends.size() > 2 || *high < *low) return std::nullopt;
    if (*high - *low >= static_cast<std::int64_t>(kMostPolicies - numbers.size())) {
      return std::nullopt;
    }
    for (std::int64_t i = *low; i <= *high; ++i) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

bool parse_policies(const std::vector<std::string_view>& fields, Original& original) {
  if (fields.size() != 6) return false;
  const auto indexes = parse_ranges(fields[1]);
  const auto min_khz = hardware::parse_number(fields[3]);
  const auto max_khz = hardware::parse_number(fields[4]);
  if (!indexes || fields[2].empty() || !min_khz || !max_khz) return false;
  for (const int index : *indexes) {
    original.policies.push_back({.index = index,
                                 .governor = std::string(fields[2]),
                                 .epp = std::string(fields[5]),
                                 .min_khz = *min_khz,
                                 .max_khz = *max_khz});
  }
  return original.policies.size() <= kMostPolicies;
}

bool parse_zone(const std::vector<std::string_view>& fields, Original& original) {
  if (fields.size() != 4 || fields[1].empty()) return false;
  const auto limit_uw = hardware::parse_number(fields[2]);
  if (!limit_uw || (fields[3] != "0" && fields[3] != "1")) return false;
  original.zones.push_back({std::string(fields[1]), *limit_uw, fields[3] == "1"});
  return true;
}

bool parse_uncore(const std::vector<std::string_view>& fields, Original& original) {
  if (fields.size() != 4 || fields[1].empty()) return false;
  const auto min_khz = hardware::parse_number(fields[2]);
  const auto max_khz = hardware::parse_number(fields[3]);
  if (!min_khz || !max_khz) return false;
  original.uncore.push_back({std::string(fields[1]), *min_khz, *max_khz});
  return true;
}

constexpr std::string_view kHeld = "held", kOwed = "owed", kOwedZone = "owed-zone";
struct HeldWord {
  std::string_view word;
  bool Held::*lever;
};
constexpr std::array<HeldWord, 5> kHeldWords{{{"governor", &Held::governor},
                                              {"frequency", &Held::frequency},
                                              {"epp", &Held::preference},
                                              {"cap", &Held::cap},
                                              {"uncore", &Held::uncore}}};

bool parse_held(const std::vector<std::string_view>& fields, Held& held) {
  if (fields.size() != 2) return false;
  for (const std::string_view word : split(fields[1], ',')) {
    const auto known = std::find_if(kHeldWords.begin(), kHeldWords.end(),
                                    [&](const HeldWord& w) { return w.word == word; });
    if (known == kHeldWords.end()) return false;
    held.*known->lever = true;
  }
  return true;
}

bool parse_owed(const std::vector<std::string_view>& fields, Held& held) {
  if (fields.size() != 2) return false;
  if (fields.front() == kOwedZone) {
    held.owed.zones.emplace_back(fields[1]);
    return !fields[1].empty();
  }
  auto policies = parse_ranges(fields[1]);
  if (!policies) return false;
  held.owed.policies = std::move(*policies);
  std::sort(held.owed.policies.begin(), held.owed.policies.end());
  return true;
}

std::optional<StoredOriginal> parse_exact(std::string_view text) {
  StoredOriginal stored;
  Original& original = stored.original;
  Held held;
  if (text.empty()) return std::nullopt;
  for (const std::string_view item : split(text, ' ')) {
    const auto fields = split(item, '/');
    const bool good = fields.front() == "cpu"      ? parse_policies(fields, original)
                      : fields.front() == "zone"   ? parse_zone(fields, original)
                      : fields.front() == "uncore" ? parse_uncore(fields, original)
                      : fields.front() == kHeld    ? parse_held(fields, held)
                      : fields.front() == kOwed || fields.front() == kOwedZone
                          ? parse_owed(fields, held)
                          : false;
    if (!good) return std::nullopt;
  }
  std::sort(original.policies.begin(), original.policies.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  stored.held = held;
  return stored;
}

std::string exact_of(const Original& original, const Held& held) {
  using Settings = std::tuple<std::string, std::int64_t, std::int64_t, std::string>;
  std::map<Settings, std::vector<int>> groups;
  for (const PolicySettings& p : original.policies) {
    groups[{p.governor, p.min_khz, p.max_khz, p.epp}].push_back(p.index);
  }
  std::vector<std::string> items;
  for (const auto& [settings, indexes] : groups) {
    const auto& [governor, min_khz, max_khz, epp] = settings;
    items.push_back(
        fmt::format("cpu/{}/{}/{}/{}/{}", ranges(indexes), governor, min_khz, max_khz, epp));
  }
  for (const ZoneSettings& zone : original.zones) {
    items.push_back(fmt::format("zone/{}/{}/{}", zone.id, zone.limit_uw, zone.enabled ? 1 : 0));
  }
  for (const UncoreSettings& die : original.uncore) {
    items.push_back(fmt::format("uncore/{}/{}/{}", die.id, die.min_khz, die.max_khz));
  }
  std::vector<std::string_view> words;
  for (const HeldWord& word : kHeldWords) {
    if (held.*word.lever) words.push_back(word.word);
  }
  if (!words.empty()) items.push_back(fmt::format("{}/{}", kHeld, fmt::join(words, ",")));
  if (!held.owed.policies.empty()) {
    items.push_back(fmt::format("{}/{}", kOwed, ranges(held.owed.policies)));
  }
  for (const std::string& zone : held.owed.zones) {
    items.push_back(fmt::format("{}/{}", kOwedZone, zone));
  }
  return fmt::format("{}", fmt::join(items, " "));
}

}  // namespace

bool Owed::owes(int policy) const {
  return std::binary_search(policies.begin(), policies.end(), policy);
}

bool Owed::owes(const std::string& zone) const {
  return std::find(zones.begin(), zones.end(), zone) != zones.end();
}

const PolicySettings* Original::policy(int index) const {
  const auto found =
      std::lower_bound(policies.begin(), policies.end(), index,
                       [](const PolicySettings& p, int wanted) { return p.index < wanted; });
  return found == policies.end() || found->index != index ? nullptr : &*found;
}

const ZoneSettings* Original::zone(const std::string& id) const {
  const auto found =
      std::find_if(zones.begin(), zones.end(), [&](const ZoneSettings& z) { return z.id == id; });
  return found == zones.end() ? nullptr : &*found;
}

const UncoreSettings* Original::die(const std::string& id) const {
  const auto found = std::find_if(uncore.begin(), uncore.end(),
                                  [&](const UncoreSettings& d) { return d.id == id; });
  return found == uncore.end() ? nullptr : &*found;
}

Original capture(const MachineState& state, std::string boot_id) {
  Original original;
  original.boot_id = std::move(boot_id);
  for (const hardware::CpuPolicy& p : state.cpu.policies) {
    original.policies.push_back({p.index, p.governor, p.epp, p.min_khz, p.max_khz});
  }
  for (const hardware::PowerZone& zone : state.zones) {
    if (hardware::limitable(zone)) {
      original.zones.push_back({zone.id, zone.limit_uw, zone.enabled});
    }
  }
  for (const hardware::UncoreDie& die : state.uncore) {
    original.uncore.push_back({die.id, die.min_khz, die.max_khz});
  }
  return original;
}

api::OriginalSettings to_report(const Original& original, const Held& held) {
  hardware::CpuFrequencies cpu;
  for (const PolicySettings& p : original.policies) {
    hardware::CpuPolicy policy;
    policy.governor = p.governor;
    policy.epp = p.epp;
    policy.min_khz = p.min_khz;
    policy.max_khz = p.max_khz;
    cpu.policies.push_back(std::move(policy));
  }
  const hardware::CpuSummary summary = hardware::summarize(cpu);
  api::OriginalSettings report;
  report.boot_id = original.boot_id;
  report.governor = summary.governor;
  report.epp = summary.epp;
  report.min_mhz = summary.min.count();
  report.max_mhz = summary.max.count();
  for (const ZoneSettings& zone : original.zones) report.cap_watts += zone.limit_uw / 1'000'000;
  report.exact = exact_of(original, held);
  return report;
}

bool says_held(const api::OriginalSettings& report) {
  // Not understood: then it may well be.
  const auto stored = parse_exact(report.exact);
  return !report.exact.empty() && (!stored || stored->held.value_or(Held{}).any());
}

StoredOriginal from_report(const api::OriginalSettings& report, const MachineState& state) {
  if (auto stored = parse_exact(report.exact)) {
    stored->original.boot_id = report.boot_id;
    return *stored;
  }
  StoredOriginal stored{capture(state, report.boot_id), std::nullopt};
  Original& original = stored.original;
  for (PolicySettings& settings : original.policies) {
    if (!report.governor.empty()) settings.governor = report.governor;
    if (!report.epp.empty()) settings.epp = report.epp;
    for (const hardware::CpuPolicy& policy : state.cpu.policies) {
      if (policy.index != settings.index) continue;
      settings.min_khz = hardware::policy_khz(policy, Megahertz{report.min_mhz});
      settings.max_khz = hardware::policy_khz(policy, Megahertz{report.max_mhz});
    }
  }
  for (ZoneSettings& zone : original.zones) {
    if (report.cap_watts == 0) break;
    zone.limit_uw = report.cap_watts * 1'000'000 / static_cast<std::int64_t>(original.zones.size());
  }
  return stored;
}

}  // namespace kwatt::agent
