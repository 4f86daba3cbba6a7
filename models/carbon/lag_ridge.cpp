// For each hour of the day a regression of the next 24 hours on the last 24, the usual day of the
// last week and the weekday. Relative to the last week's mean, so that one ridge suits all zones.
// Further than a day ahead its own forecast stands in for the past.
#include <algorithm>
#include <array>

#include "models/carbon/learner.hpp"
#include "models/carbon/recursive_ridge.hpp"

namespace kwatt::models::carbon {
namespace {

// One, the lags (latest first), the usual day (from the next hour on), Friday to Sunday.
constexpr std::size_t kLags = 1, kUsual = kLags + kDay, kWeekend = kUsual + kDay,
                      kInputs = kWeekend + 3;
constexpr double kRidge = 0.3;
constexpr double kForget = 0.998;       // by the day: half in a year
constexpr double kWeekdayWeight = 0.3;  // of an indicator, against the ridge
constexpr double kLeastMean = 1;        // grams; a supply without carbon must not divide by zero

struct Inputs {
  std::array<double, kInputs> x{};
  double mean = 0;
};

// Seen at the end of grams[0..at): at >= kWeek.
Inputs inputs_at(const Hours& past, std::size_t at) {
  const double* const now = past.grams.data() + at;
  Inputs out;
  for (std::size_t i = 1; i <= kWeek; ++i) out.mean += *(now - i);
  out.mean = std::max(kLeastMean, out.mean / static_cast<double>(kWeek));
  out.x[0] = 1;
  for (std::size_t i = 0; i < kDay; ++i) out.x[kLags + i] = *(now - i - 1) / out.mean - 1;
  for (std::size_t i = 0; i < kDay; ++i) {
    double sum = 0;
    for (std::size_t day = 1; day <= 7; ++day) sum += *(now - day * kDay + i);
    out.x[kUsual + i] = sum / 7 / out.mean - 1;
  }
  constexpr std::size_t kFriday = 4;
  const std::size_t weekday = past.day_of_week(at);
  if (weekday >= kFriday) out.x[kWeekend + weekday - kFriday] = kWeekdayWeight;
  return out;
}

class LagRidge final : public Learner {
 public:
  LagRidge() {
    // Until taught: half the usual day, half yesterday.
    RecursiveRidge fresh(kInputs, kDay, kRidge, kForget);
    for (std::size_t lead = 0; lead < kDay; ++lead) {
      fresh.believe(kUsual + lead, lead, 0.5);
      fresh.believe(kLags + kDay - 1 - lead, lead, 0.5);
    }
    by_hour_.assign(kDay, fresh);
  }
  std::string_view name() const override { return "lag-ridge"; }
  std::size_t needs() const override { return kWeek; }
  void learn(const Hours& past) override {
    if (past.size() < kWeek + kDay) return;
    const std::size_t at = past.size() - kDay;  // the 24 hours from there on are now all known
    const Inputs inputs = inputs_at(past, at);
    std::array<double, kDay> came{};
    for (std::size_t i = 0; i < kDay; ++i) came[i] = past.grams[at + i] / inputs.mean - 1;
    by_hour_[past.hour_of_day(at)].learn(inputs.x, came);
  }
  void predict(const Hours& past, std::span<double> out) const override {
    Hours seen;  // the last week, to which forecasts are added
    seen.first = past.first + static_cast<std::int64_t>(past.size() - kWeek);
    seen.grams.assign(past.grams.end() - kWeek, past.grams.end());
    std::array<double, kDay> day{};
    for (std::size_t done = 0; done < out.size(); done += kDay) {
      const Inputs inputs = inputs_at(seen, seen.size());
      by_hour_[seen.hour_of_day(seen.size())].predict(inputs.x, day);
      for (double& one : day) {
        one = std::max(0.0, (one + 1) * inputs.mean);
        seen.grams.push_back(one);
      }
      const std::size_t wanted = std::min(kDay, out.size() - done);
      std::copy_n(day.begin(), wanted, out.begin() + static_cast<std::ptrdiff_t>(done));
    }
  }

 private:
  std::vector<RecursiveRidge> by_hour_;
};

}  // namespace

std::unique_ptr<Learner> make_lag_ridge() {
  return std::make_unique<LagRidge>();
}

}  // namespace kwatt::models::carbon
