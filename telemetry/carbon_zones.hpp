#pragma once
// What sources have said of each zone's carbon intensity, and whether that can be relied on. Not
// thread-safe. Bounded: a year and a bit of each zone.
#include <map>
#include <string>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::telemetry {

// For the condition CarbonDataAvailable. Whatever is False keeps the safe default: nothing waits
// for clean electricity.
struct CarbonState {
  bool available = false;
  std::string reason;   // Read, NotRead, Failing (still believed: the last values are not stale),
                        // Stale
  std::string message;  // a sentence, with the last error where there is one
};

class CarbonZones {
 public:
  static constexpr Duration kKept = std::chrono::hours{400 * 24};

  // The series has whole steps; of several values within one the mean counts, each time once.
  explicit CarbonZones(Duration step = std::chrono::hours{1}) : step_(step) {}

  void took(const std::string& zone, const std::vector<models::carbon::Reading>& readings);
  void failed(const std::string& zone, const Error& error);
  // Empty: nothing was ever read.
  models::carbon::IntensitySeries series(const std::string& zone) const;
  // `stale_after`: how long ago the newest value may have ended.
  CarbonState state(const std::string& zone, TimePoint now, Duration stale_after) const;

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
