#include "models/carbon/learner.hpp"

#include <array>

namespace kwatt::models::carbon {
namespace {

struct Named {
  std::string_view name;
  std::unique_ptr<Learner> (*make)();
};
constexpr std::array<Named, 6> kLearners{{
    {"naive-day", [] { return make_seasonal_naive(kDay); }},
    {"naive-week", [] { return make_seasonal_naive(kWeek); }},
    {"holt-winters", make_holt_winters},
    {"lag-ridge", make_lag_ridge},
    {"deviation-ridge", make_deviation_ridge},
    {kDefaultLearner, make_blend},
}};

std::size_t modulo(std::int64_t value, std::size_t by) {
  const auto n = static_cast<std::int64_t>(by);
  return static_cast<std::size_t>((value % n + n) % n);
}

}  // namespace

std::size_t Hours::hour_of_day(std::size_t index) const {
  return modulo(first + static_cast<std::int64_t>(index), kDay);
}

std::size_t Hours::day_of_week(std::size_t index) const {
  // 1970-01-01 was a Thursday: 72 hours after a Monday.
  return modulo(first + static_cast<std::int64_t>(index) + 72, kWeek) / kDay;
}

std::span<const std::string_view> learner_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kLearners.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kLearners[i].name;
    return names;
  }();
  return kNames;
}

std::unique_ptr<Learner> make_learner(std::string_view name) {
  for (const Named& one : kLearners) {
    if (one.name == name) return one.make();
  }
  return nullptr;
}

}  // namespace kwatt::models::carbon
