#pragma once
// The cluster over time: means over equal steps, which grow with the length of the run so that any
// run fits into a thousand points.
#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace kwatt::simulator {

// What holds at a moment, of the whole cluster.
struct Level {
  double watts = 0;
  double grams_per_hour = 0;  // CO2
  double used_cpu = 0;        // millicores reserved by work
  double machines_on = 0;     // booting ones too
  double queued = 0;          // jobs that wait
};

class Timeline {
 public:
  static constexpr std::size_t kPoints = 1000;

  // `level` held from the last call to `now_ms`; the first call starts at 0.
  void hold(std::int64_t now_ms, const Level& level);

  struct Point {
    Duration at{0};  // begin of the step
    Level mean;
  };
  // The last step may be shorter than step().
  std::vector<Point> points() const;
  Duration step() const { return Duration{step_ms_}; }

 private:
  struct Sum {
    Level level;  // × ms
    std::int64_t ms = 0;
  };
  void coarsen();

  std::int64_t step_ms_ = 10'000, now_ms_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace kwatt::simulator
