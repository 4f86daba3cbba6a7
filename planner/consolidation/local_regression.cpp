#include "planner/consolidation/local_regression.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::planner::consolidation {
namespace {

constexpr std::size_t kLength = 10;
constexpr double kFallback = 0.7;

// Of the least squares line through samples at x = 1..10, newest first: its value at x.
double line_at(const History& newest_first, double x) {
  constexpr double kMean = 5.5, kSquares = 82.5;
  double sum = 0, slope = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    sum += newest_first[i];
    slope += newest_first[i] * (static_cast<double>(kLength - i) - kMean);
  }
  return sum / kLength + slope / kSquares * (x - kMean);
}

}  // namespace

bool LocalRegression::overloaded(const Draft& draft, const DraftHost& host,
                                 std::uint32_t extra) const {
  const Load load = load_of(draft, host, extra);
  if (load.samples < kLength) return load.requested > kFallback;
  const Fleet& fleet = draft.fleet();
  const HostKind& kind = fleet.kind(fleet.hosts[host.index]);
  const double steps = std::ceil(load.largest_memory / kind.copy_per_second / fleet.step_seconds);
  return safety_ * line_at(load.history, static_cast<double>(kLength) + steps) >= 1;
}

}  // namespace kwatt::planner::consolidation
