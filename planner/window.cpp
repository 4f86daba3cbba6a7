// Means over the newest samples of a node.
#include <algorithm>
#include <array>

#include "planner/levers.hpp"

namespace kwatt::planner {
namespace {

// The usual gap between the newest samples: their median, so that a source which was away for an
// hour is not taken for one that sends once an hour.
constexpr std::size_t kGaps = 5;

Duration period_of(const NodeView& node) {
  const std::size_t n = node.samples.size();
  std::array<Duration, kGaps> gaps;
  std::size_t count = 0;
  for (std::size_t i = n; i >= 2 && count < kGaps; --i) {
    gaps[count++] = node.samples[i - 1].at - node.samples[i - 2].at;
  }
  if (count == 0) return Duration{0};
  std::sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count));
  return gaps[(count - 1) / 2];
}

}  // namespace

Duration stale_after(const NodeView& node) {
  return std::max<Duration>(std::chrono::seconds{30}, 3 * period_of(node));
}

std::optional<WindowMean> window_mean(const NodeView& node, Duration window, TimePoint now) {
  const auto& samples = node.samples;
  if (samples.empty() || now - samples.back().at > stale_after(node)) return std::nullopt;
  // A window is covered if the samples reach back to its start, give or take one period.
  const TimePoint start = samples.back().at - window;
  if (samples.front().at > start + period_of(node)) return std::nullopt;
  std::int64_t count = 0, metered = 0;
  WindowMean sum;
  for (auto s = samples.rbegin(); s != samples.rend() && (s->at > start || count == 0); ++s) {
    ++count;
    sum.utilization += s->utilization;
    sum.busy += s->busy;
    if (!s->has_power) continue;
    ++metered;
    sum.power += s->power;
  }
  sum.utilization = sum.utilization / count;
  sum.busy = sum.busy / count;
  sum.has_power = metered > 0;
  if (metered > 0) sum.power = sum.power / metered;
  return sum;
}

}  // namespace kwatt::planner
