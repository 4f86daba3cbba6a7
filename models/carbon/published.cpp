#include "models/carbon/published.hpp"

#include <algorithm>

namespace kwatt::models::carbon {

std::optional<Steps> published_ahead(const std::vector<Reading>& readings, TimePoint now) {
  const auto next = std::find_if(readings.begin(), readings.end(),
                                 [&](const Reading& one) { return one.at > now; });
  if (next == readings.begin() || next == readings.end()) return std::nullopt;
  Steps out;
  out.start = std::prev(next)->at;
  out.step = next->at - out.start;
  for (auto one = next; one + 1 != readings.end(); ++one) {
    if ((one + 1)->at > one->at) out.step = std::min(out.step, (one + 1)->at - one->at);
  }
  auto current = std::prev(next);
  for (TimePoint at = out.start; at <= readings.back().at; at += out.step) {
    if (out.grams_per_kwh.size() == kMostPublishedSteps) break;
    while (current + 1 != readings.end() && (current + 1)->at <= at) ++current;
    out.grams_per_kwh.push_back(current->grams_per_kwh);
  }
  return out;
}

}  // namespace kwatt::models::carbon
