#include "base/clock.hpp"

namespace kwatt {

TimePoint SystemClock::now() const {
  return std::chrono::floor<Duration>(std::chrono::system_clock::now());
}

MonotonicPoint SystemClock::monotonic() const {
  return std::chrono::steady_clock::now();
}

}  // namespace kwatt
