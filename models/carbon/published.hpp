#pragma once
// Values that a source has published ahead, such as a day-ahead forecast: they are used as they
// are, in their own steps, before anything is forecast here. Pure.
#include <optional>
#include <vector>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::models::carbon {

struct Steps {
  TimePoint start;  // of the step that holds `now`
  Duration step{0};
  std::vector<double> grams_per_kwh;
};

inline constexpr std::size_t kMostPublishedSteps = 20'000;  // two weeks of minutes

// `readings` oldest first. nullopt: none lies ahead of `now`, or none covers it. A step is the
// smallest distance of two readings from the one that covers `now` on; what is missing between two
// readings counts as the one before. Values beyond kMostPublishedSteps are left out.
std::optional<Steps> published_ahead(const std::vector<Reading>& readings, TimePoint now);

}  // namespace kwatt::models::carbon
