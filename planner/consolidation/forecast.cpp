#include "planner/consolidation/forecast.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::planner::consolidation {

Outlook recent_outlook(std::span<const double> past) {
  constexpr std::size_t kLongest = 24;
  constexpr double kFading = 0.9;  // weight of a sample, of that of the next
  constexpr double kUnknown = 0.1, kUnknownWeight = 3;
  if (past.empty()) return {0, kUnknown};
  const std::span<const double> recent = past.last(std::min(kLongest, past.size()));
  double weights = 0, mean = 0, squares = 0;
  for (const double sample : recent) {
    weights = weights * kFading + 1;
    const double change = sample - mean;
    mean += change / weights;
    squares = squares * kFading + change * (sample - mean);
  }
  const double variance =
      (squares + kUnknownWeight * kUnknown * kUnknown) / (weights + kUnknownWeight);
  return {mean, std::sqrt(variance)};
}

}  // namespace kwatt::planner::consolidation
