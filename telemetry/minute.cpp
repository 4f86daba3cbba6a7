#include "telemetry/minute.hpp"

#include <algorithm>

namespace kwatt::telemetry {

using std::chrono::minutes;

std::optional<SampleRow> sample_row(const std::string& node, const std::vector<Sample>& samples,
                                    TimePoint minute) {
  SampleRow row;
  std::int64_t count = 0, metered = 0, milliwatts = 0;
  for (const Sample& sample : samples) {
    if (sample.at < minute || sample.at >= minute + minutes{1}) continue;
    ++count;
    row.utilization += sample.utilization;
    if (!sample.power) continue;
    ++metered;
    milliwatts += sample.power->count();
    row.max = std::max(row.max.value_or(Milliwatts{0}), *sample.power);
  }
  if (count == 0) return std::nullopt;
  row.minute = minute;
  row.node = node;
  row.utilization = row.utilization / count;
  if (metered > 0) row.mean = Milliwatts{milliwatts / metered};
  row.source = metered > 0 ? "agent" : "none";
  return row;
}

}  // namespace kwatt::telemetry
