#include "planner/consolidation/local_regression.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::planner::consolidation {
namespace {

constexpr std::size_t kLength = 10;
constexpr double kFallback = 0.7;

// Of the least squares line through samples at x = 1..10: its value at x. `sample(i)` is the i-th
// newest.
template <class Sample>
double line_at(double x, Sample sample) {
  constexpr double kMean = 5.5, kSquares = 82.5;
  double sum = 0, slope = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    sum += sample(i);
    slope += sample(i) * (static_cast<double>(kLength - i) - kMean);
  }
  return sum / kLength + slope / kSquares * (x - kMean);
}

}  // namespace

bool LocalRegression::overloaded(const Draft& draft, const DraftHost& host,
                                 std::uint32_t extra) const {
  if (samples_of(draft, host, extra) < kLength) {
    return requested_share(draft, host, extra) > kFallback;
  }
  const Fleet& fleet = draft.fleet();
  double memory = host.largest_memory;
  if (extra != kNone) memory = std::max(memory, fleet.vms[extra].memory);
  const double copying = memory / fleet.kind(fleet.hosts[host.index]).copy_per_second;
  const double x = static_cast<double>(kLength) + std::ceil(copying / fleet.step_seconds);
  const History& own = host.history;
  const double expected = extra == kNone
                              ? line_at(x, [&](std::size_t i) { return own[i]; })
                              : line_at(x, [&, &more = draft.history(extra)](std::size_t i) {
                                  return own[i] + more[i];
                                });
  return safety_ * expected / host.cpu >= 1;
}

}  // namespace kwatt::planner::consolidation
