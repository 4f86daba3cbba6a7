#pragma once
// A token bucket, pure.
#include "base/time.hpp"

namespace kwatt::kube {

class RateLimiter {
 public:
  // `per_second` > 0; `burst` >= 1. Starts full.
  RateLimiter(double per_second, int burst);

  // Takes a token, of the future if need be; the caller waits for the returned time.
  Duration reserve(MonotonicPoint now);
  // Takes a token only if one is there.
  bool try_take(MonotonicPoint now);

 private:
  void refill(MonotonicPoint now);

  double per_second_, burst_, tokens_;
  MonotonicPoint last_{};
  bool started_ = false;
};

}  // namespace kwatt::kube
