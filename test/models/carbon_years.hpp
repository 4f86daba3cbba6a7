#pragma once
// Series whose next day is known, for tests of forecasts.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::models::carbon {

inline const TimePoint kMonday = *parse_rfc3339("2024-01-01T00:00:00Z");

// Clean at noon, dirty at night, cleaner on Sundays.
inline double regular(std::size_t hour) {
  const double day = 300 + 100 * std::cos(2 * std::numbers::pi * static_cast<double>(hour) / 24);
  return hour / 24 % 7 == 6 ? day - 50 : day;
}

// The same with a wind that comes and goes over days; small numbers from a fixed generator.
inline std::vector<double> windy(std::size_t hours) {
  std::vector<double> out;
  std::uint64_t state = 7;
  double wind = 0;
  for (std::size_t hour = 0; hour < hours; ++hour) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double noise = static_cast<double>(state >> 40U) / static_cast<double>(1U << 24U) - 0.5;
    wind = 0.97 * wind + 20 * noise;
    out.push_back(std::max(1.0, regular(hour) + wind));
  }
  return out;
}

inline IntensitySeries series_of(const std::vector<double>& grams) {
  std::vector<Reading> readings;
  for (std::size_t i = 0; i < grams.size(); ++i) {
    if (!std::isnan(grams[i])) {
      readings.push_back({kMonday + std::chrono::hours{static_cast<std::int64_t>(i)}, grams[i]});
    }
  }
  return *IntensitySeries::make(readings, std::chrono::hours{1});
}

}  // namespace kwatt::models::carbon
