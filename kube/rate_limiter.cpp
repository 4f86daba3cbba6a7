#include "kube/rate_limiter.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::kube {

RateLimiter::RateLimiter(double per_second, int burst)
    : per_second_(per_second), burst_(static_cast<double>(std::max(burst, 1))), tokens_(burst_) {}

void RateLimiter::refill(MonotonicPoint now) {
  if (started_ && now > last_) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    tokens_ = std::min(burst_, tokens_ + seconds * per_second_);
  }
  last_ = started_ ? std::max(last_, now) : now;
  started_ = true;
}

Duration RateLimiter::reserve(MonotonicPoint now) {
  refill(now);
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration{0};
  return Duration{static_cast<std::int64_t>(std::ceil(-tokens_ / per_second_ * 1000.0))};
}

bool RateLimiter::try_take(MonotonicPoint now) {
  refill(now);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace kwatt::kube
