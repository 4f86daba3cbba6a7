#pragma once
// Carbon intensity of one zone's electricity over time, in grams of CO2 equivalent per kWh. A value
// is the mean over one step of UTC time: there is no daylight saving in it. Values, no sharing.
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace kwatt::models::carbon {

// No electricity is dirtier: burnt peat gives 1,100.
inline constexpr double kHighestGrams = 5000;
// "" for a value that may stand in a series, else what is wrong with it.
std::string_view grams_problem(double grams_per_kwh);

struct Reading {
  TimePoint at;  // the beginning of its step
  double grams_per_kwh = 0;
  bool operator==(const Reading&) const = default;
};

class IntensitySeries {
 public:
  static constexpr std::size_t kMostSteps = 1'000'000;  // 114 years of hours

  IntensitySeries() = default;
  // `readings` in the order of time, at `at` = first + k × step; what lies between is a gap.
  // Errors: invalid_argument, with the time of the reading: a value that no electricity has, a time
  // that does not grow or is off the grid, more than kMostSteps.
  static Result<IntensitySeries> make(const std::vector<Reading>& readings, Duration step);

  bool empty() const { return grams_.empty(); }
  std::size_t size() const { return grams_.size(); }  // steps, with gaps
  std::size_t gaps() const { return gaps_; }
  TimePoint start() const { return start_; }
  Duration step() const { return step_; }
  TimePoint time_of(std::size_t index) const {
    return start_ + step_ * static_cast<std::int64_t>(index);
  }
  // The end of the newest value; start() of an empty series.
  TimePoint end() const { return time_of(size()); }
  // How long ago the newest value ended; not negative. An empty series is infinitely old.
  Duration age(TimePoint now) const;
  // nullopt: a gap, or outside.
  std::optional<double> value(std::size_t index) const;
  std::optional<double> at(TimePoint time) const;

  // What was known at `now`: steps that had ended by then.
  IntensitySeries until(TimePoint now) const;
  // The same in whole hours of UTC: means of the steps in the hour, of which half must be known; or
  // a longer step's value in each of its hours.
  IntensitySeries hourly() const;

 private:
  TimePoint start_{};
  Duration step_{std::chrono::hours{1}};
  std::vector<double> grams_;  // NaN: a gap; the first and the last are values
  std::size_t gaps_ = 0;
  static IntensitySeries trimmed(TimePoint start, Duration step, std::vector<double> grams);
};

}  // namespace kwatt::models::carbon
