#include "base/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt {

Duration Backoff::next(MonotonicPoint now) {
  if (failures_ > 0 && now - last_ >= options_.reset_after) failures_ = 0;
  last_ = now;
  const double steps = std::min(failures_, 60);
  ++failures_;
  const double base =
      std::min(static_cast<double>(options_.initial.count()) * std::pow(options_.factor, steps),
               static_cast<double>(options_.maximum.count()));
  return Duration{static_cast<std::int64_t>(base * (1.0 + options_.jitter * random_()))};
}

Duration exponential(Duration initial, Duration maximum, int failures) {
  Duration step = initial;
  for (int i = 1; i < failures && step < maximum; ++i) step *= 2;
  return std::min(step, maximum);
}

}  // namespace kwatt
