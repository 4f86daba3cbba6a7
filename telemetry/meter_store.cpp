#include "telemetry/meter_store.hpp"

namespace kwatt::telemetry {

bool MeterStore::add(const std::string& node, MeterReading reading) {
  if (reading.power < Milliwatts{0} || reading.power > options_.implausible) return false;
  std::deque<MeterReading>& readings = nodes_[node];
  if (!readings.empty() && reading.at <= readings.back().at) return false;
  readings.push_back(std::move(reading));
  while (readings.front().at + options_.keep < readings.back().at) readings.pop_front();
  return true;
}

std::optional<MeterReading> MeterStore::at(const std::string& node, TimePoint when) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  for (auto r = found->second.rbegin(); r != found->second.rend(); ++r) {
    if (r->at > when) continue;
    if (when - r->at > options_.max_age) break;
    return *r;
  }
  return std::nullopt;
}

}  // namespace kwatt::telemetry
