#include "planner/consolidation/adaptive_threshold.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::planner::consolidation {
namespace {

constexpr std::size_t kEnough = 12;
constexpr double kFallback = 0.7;

double median(History& samples, std::size_t count) {
  const auto begin = samples.begin();
  const auto middle = begin + static_cast<std::ptrdiff_t>(count / 2);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  std::nth_element(begin, middle, end);
  if (count % 2 == 1) return *middle;
  return (*middle + *std::max_element(begin, middle)) / 2;
}

}  // namespace

double interquartile_range(History& samples, std::size_t count) {
  std::sort(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count));
  const auto quartile = [&](double share) {
    return samples[static_cast<std::size_t>(
        std::floor(share * static_cast<double>(count + 1) + 0.5) - 1)];
  };
  return quartile(0.75) - quartile(0.25);
}

double median_absolute_deviation(History& samples, std::size_t count) {
  const double middle = median(samples, count);
  for (std::size_t i = 0; i < count; ++i) samples[i] = std::abs(samples[i] - middle);
  return median(samples, count);
}

bool AdaptiveThreshold::overloaded(const Draft& draft, const DraftHost& host,
                                   std::uint32_t extra) const {
  const double requested = requested_share(draft, host, extra);
  const std::size_t count = samples_of(draft, host, extra);
  if (count < kEnough) return requested > kFallback;
  History samples = host.history;
  for (std::size_t i = 0; i < count; ++i) {
    if (extra != kNone) samples[i] += draft.history(extra)[i];
    samples[i] /= host.cpu;
  }
  return requested > 1 - safety_ * spread_(samples, count);
}

}  // namespace kwatt::planner::consolidation
