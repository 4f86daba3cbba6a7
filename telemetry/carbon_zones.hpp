#pragma once
// What sources have said of each zone's carbon intensity. Not thread-safe. Bounded: a year and a
// bit of each zone.
#include <map>
#include <optional>
#include <string>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::telemetry {

class CarbonZones {
 public:
  static constexpr Duration kKept = std::chrono::hours{400 * 24};

  // The series has whole steps; of several values within one the mean counts, each time once.
  explicit CarbonZones(Duration step = std::chrono::hours{1}) : step_(step) {}

  void took(const std::string& zone, const std::vector<models::carbon::Reading>& readings);
  void failed(const std::string& zone, const Error& error);
  // Empty: nothing was ever read.
  models::carbon::IntensitySeries series(const std::string& zone) const;
  // nullopt: nothing was ever read.
  std::optional<models::carbon::Reading> newest(const std::string& zone) const;
  // The last error of a zone as a sentence; "": its last fetch went well.
  std::string failure(const std::string& zone) const;

 private:
  struct Zone {
    std::map<TimePoint, double> grams;
    std::string failure;  // "": the last fetch went well
  };
  // Of the step that holds `at`.
  TimePoint start_of(TimePoint at) const { return at - at.time_since_epoch() % step_; }
  Duration step_;
  std::map<std::string, Zone, std::less<>> zones_;
};

}  // namespace kwatt::telemetry
