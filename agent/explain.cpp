#include "agent/explain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "agent/plan.hpp"
#include "agent/report.hpp"

namespace kwatt::agent {
namespace {

std::string range_text(Megahertz min, Megahertz max) {
  return fmt::format("; the hardware's range is {} to {} MHz", min.count(), max.count());
}

// "" where a range would not help.
std::string range_of(const FailedStore& failed, const MachineState& now, const Original& original) {
  if (failed.error.code != ErrorCode::conflict) return {};
  if (failed.write.what.find("uncore") != std::string::npos) {
    const auto range = hardware::uncore_range(now.uncore);
    return range ? range_text(range->min, range->max) : std::string{};
  }
  if (failed.write.what.find("frequency") != std::string::npos) {
    const auto cpu = hardware::summarize(now.cpu);
    return range_text(cpu.hardware_min, cpu.hardware_max);
  }
  const CapRange range = cap_range(now, original);
  if (failed.write.what.starts_with("power limit of") && range.max_watts > 0) {
    return fmt::format("; caps of {} to {} W should be possible", range.min_watts, range.max_watts);
  }
  return {};
}

std::string sentence_of(const FailedStore& failed) {
  std::string text = hardware::explain_limit_error(failed.error, failed.write).text();
  if (failed.error.code == ErrorCode::forbidden) {
    text += "; is the host's /sys mounted for writing?";
  }
  return text;
}

}  // namespace

std::vector<std::string> explain(const std::vector<FailedStore>& failed, const MachineState& now,
                                 const Original& original) {
  std::vector<std::string> sentences;
  sentences.reserve(failed.size());
  for (const FailedStore& each : failed) {
    sentences.push_back(sentence_of(each) + range_of(each, now, original));
  }
  return grouped(sentences);
}

std::vector<std::string> grouped(const std::vector<std::string>& sentences) {
  struct Group {
    std::string first, key;
    int more = 0;
  };
  std::vector<Group> groups;
  for (const std::string& sentence : sentences) {
    std::string key = without_numbers(sentence);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const Group& group) { return group.key == key; });
    if (same != groups.end()) {
      ++same->more;
    } else {
      groups.push_back({sentence, std::move(key)});
    }
  }
  std::vector<std::string> result;
  result.reserve(groups.size());
  for (const Group& group : groups) {
    result.push_back(group.more == 0
                         ? group.first
                         : fmt::format("{} (and {} more alike)", group.first, group.more));
  }
  return result;
}

}  // namespace kwatt::agent
