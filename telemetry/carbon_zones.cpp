#include "telemetry/carbon_zones.hpp"

namespace kwatt::telemetry {

void CarbonZones::took(const std::string& zone,
                       const std::vector<models::carbon::Reading>& readings) {
  Zone& found = zones_[zone];
  found.failure.clear();
  for (const models::carbon::Reading& reading : readings) {
    // Sources refuse these with a sentence; here they would only keep series() from being made.
    if (reading.at < TimePoint{}) continue;
    if (!models::carbon::grams_problem(reading.grams_per_kwh).empty()) continue;
    found.grams[reading.at] = reading.grams_per_kwh;
  }
  if (found.grams.empty()) return;
  const TimePoint oldest = found.grams.rbegin()->first - kKept;
  found.grams.erase(found.grams.begin(), found.grams.lower_bound(oldest));
}

void CarbonZones::failed(const std::string& zone, const Error& error) {
  zones_[zone].failure = error.text();
}

models::carbon::IntensitySeries CarbonZones::series(const std::string& zone) const {
  const auto found = zones_.find(zone);
  if (found == zones_.end()) return {};
  std::vector<models::carbon::Reading> readings;
  double count = 0;  // of values in the last of them
  for (const auto& [at, grams] : found->second.grams) {
    const TimePoint start = start_of(at);
    if (readings.empty() || readings.back().at != start) {
      readings.push_back({start, 0});
      count = 0;
    }
    double& mean = readings.back().grams_per_kwh;
    mean += (grams - mean) / ++count;
  }
  auto series = models::carbon::IntensitySeries::make(readings, step_);
  return series ? std::move(*series) : models::carbon::IntensitySeries();
}

std::optional<models::carbon::Reading> CarbonZones::newest(const std::string& zone) const {
  const auto found = zones_.find(zone);
  if (found == zones_.end() || found->second.grams.empty()) return std::nullopt;
  const auto& [at, grams] = *found->second.grams.rbegin();
  return models::carbon::Reading{at, grams};
}

std::string CarbonZones::failure(const std::string& zone) const {
  const auto found = zones_.find(zone);
  return found == zones_.end() ? "" : found->second.failure;
}

}  // namespace kwatt::telemetry
