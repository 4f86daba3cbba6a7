#pragma once
// The only door to the present. Pure folders never see it: they get a TimePoint.
#include "base/time.hpp"

namespace kwatt {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;             // wall clock; may jump
  virtual MonotonicPoint monotonic() const = 0;  // never goes back; for leases and timeouts
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  MonotonicPoint monotonic() const override;
};

// A clock for tests: stands still until told to move.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start) : now_(start) {}
  TimePoint now() const override { return now_; }
  MonotonicPoint monotonic() const override { return monotonic_; }
  void advance(Duration by) {
    now_ += by;
    monotonic_ += by;
  }

 private:
  TimePoint now_;
  MonotonicPoint monotonic_{};
};

}  // namespace kwatt
