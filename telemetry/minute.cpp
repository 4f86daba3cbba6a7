#include "telemetry/minute.hpp"

#include <algorithm>

namespace kwatt::telemetry {

using std::chrono::minutes;

std::optional<SampleRow> sample_row(const std::string& node, const std::vector<Reading>& readings,
                                    TimePoint minute) {
  SampleRow row;
  std::int64_t count = 0, metered = 0, milliwatts = 0;
  row.source = "none";
  for (const Reading& reading : readings) {
    if (reading.at < minute || reading.at >= minute + minutes{1}) continue;
    if (reading.has_utilization) {
      ++count;
      row.utilization += reading.utilization;
    }
    if (!reading.power) continue;
    ++metered;
    milliwatts += reading.power->count();
    row.max = std::max(row.max.value_or(Milliwatts{0}), *reading.power);
    row.source = to_string(reading.power_source);
  }
  if (count == 0) return std::nullopt;
  row.minute = minute;
  row.node = node;
  row.utilization = row.utilization / count;
  if (metered > 0) row.mean = Milliwatts{milliwatts / metered};
  return row;
}

}  // namespace kwatt::telemetry
