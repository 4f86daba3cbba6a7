#pragma once
// Exponential backoff with jitter. Randomness and time come from outside.
#include <functional>

#include "base/time.hpp"

namespace kwatt {

struct BackoffOptions {
  Duration initial{800};
  Duration maximum{30'000};  // before jitter
  double factor = 2.0;
  double jitter = 1.0;            // adds 0..jitter × the step
  Duration reset_after{120'000};  // so long without a failure starts anew
};

// Not thread-safe; one per retried thing.
class Backoff {
 public:
  using Random = std::function<double()>;  // uniform in [0, 1)
  Backoff(BackoffOptions options, Random random) : options_(options), random_(std::move(random)) {}

  // The pause before the next attempt, given the time of this failure.
  Duration next(MonotonicPoint now);
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  BackoffOptions options_;
  Random random_;
  int failures_ = 0;
  MonotonicPoint last_{};
};

// `initial` doubled `failures - 1` times, at most `maximum`; safe against overflow.
Duration exponential(Duration initial, Duration maximum, int failures);

}  // namespace kwatt
