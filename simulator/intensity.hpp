#pragma once
// CO2 of a kilowatt-hour in one zone over time, as the simulator charges it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace kwatt::simulator {

// value i holds from start + i·step on; before the first it counts as the first, after the last as
// the last. Empty: `otherwise` always.
struct Intensity {
  TimePoint start;
  Duration step = std::chrono::hours{1};
  std::vector<double> grams_per_kwh;  // finite, not negative
  double otherwise = 0;

  double at(TimePoint time) const;
  // When the value may change next, after `time`; TimePoint::max(): never.
  TimePoint next_change(TimePoint time) const;
  // Over a span; the value at `from` if it is empty.
  double mean(TimePoint from, TimePoint to) const;
};

// By zone; a zone that is not here has the series of "", if there is one, else 0 g.
using Intensities = std::map<std::string, Intensity>;
const Intensity& intensity_of(const Intensities& all, const std::string& zone);

}  // namespace kwatt::simulator
