#include "simulator/timeline.hpp"

#include <algorithm>

namespace kwatt::simulator {
namespace {

void add(Level& sum, const Level& level, double times) {
  sum.watts += level.watts * times;
  sum.grams_per_hour += level.grams_per_hour * times;
  sum.used_cpu += level.used_cpu * times;
  sum.machines_on += level.machines_on * times;
  sum.queued += level.queued * times;
}

}  // namespace

void Timeline::hold(std::int64_t now_ms, const Level& level) {
  while (now_ms_ < now_ms) {
    auto index = static_cast<std::size_t>(now_ms_ / step_ms_);
    while (index >= kPoints) {
      coarsen();
      index = static_cast<std::size_t>(now_ms_ / step_ms_);
    }
    if (index >= sums_.size()) sums_.resize(index + 1);
    const std::int64_t end = std::min(now_ms, (static_cast<std::int64_t>(index) + 1) * step_ms_);
    add(sums_[index].level, level, static_cast<double>(end - now_ms_));
    sums_[index].ms += end - now_ms_;
    now_ms_ = end;
  }
}

void Timeline::coarsen() {
  for (std::size_t i = 0; i < sums_.size(); i += 2) {
    Sum both = sums_[i];
    if (i + 1 < sums_.size()) {
      add(both.level, sums_[i + 1].level, 1);
      both.ms += sums_[i + 1].ms;
    }
    sums_[i / 2] = both;
  }
  sums_.resize((sums_.size() + 1) / 2);
  step_ms_ *= 2;
}

std::vector<Timeline::Point> Timeline::points() const {
  std::vector<Point> points;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Point point{Duration{static_cast<std::int64_t>(i) * step_ms_}, {}};
    if (sums_[i].ms > 0) add(point.mean, sums_[i].level, 1.0 / static_cast<double>(sums_[i].ms));
    points.push_back(point);
  }
  return points;
}

}  // namespace kwatt::simulator
