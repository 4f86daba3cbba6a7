#pragma once
// What learns a zone's carbon intensity hour by hour and says how it will go on. Learners see the
// past only, by construction: they are given the hours that have ended, one more at a time.
// Deterministic: same hours, same forecast. A learner is used by one thread at a time.
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace kwatt::models::carbon {

inline constexpr std::size_t kDay = 24, kWeek = 168;  // hours

// Hours without gaps: grams[i] is the mean of the hour first + i after 1970-01-01T00:00Z.
struct Hours {
  std::int64_t first = 0;
  std::vector<double> grams;

  std::size_t size() const { return grams.size(); }
  // Of any index, also beyond the end. UTC; day_of_week 0 is Monday.
  std::size_t hour_of_day(std::size_t index) const;
  std::size_t day_of_week(std::size_t index) const;
};

class Learner {
 public:
  virtual ~Learner() = default;
  virtual std::string_view name() const = 0;
  // So many hours must have been learned before predict() may be asked.
  virtual std::size_t needs() const = 0;
  // `past` is what it was at the last call, with one hour more.
  virtual void learn(const Hours& past) = 0;
  // The hours that follow `past`, which is that of the last learn(). Never negative.
  virtual void predict(const Hours& past, std::span<double> out) const = 0;
};

// Each hour as it was `period` hours before: kDay or kWeek. What any other must beat.
std::unique_ptr<Learner> make_seasonal_naive(std::size_t period);
// Additive Holt-Winters with daily season and damped trend (Gardner & McKenzie, Management Science
// 31(10), 1985).
std::unique_ptr<Learner> make_holt_winters();
// A regression on lags for each hour of the day, learned from every hour that ends (recursive least
// squares with a ridge prior and exponential forgetting).
std::unique_ptr<Learner> make_lag_ridge();
// One regression for all hours of the day, on the deviations from the usual day.
std::unique_ptr<Learner> make_deviation_ridge();
// All of the above, each weighed for each lead by its own past errors.
std::unique_ptr<Learner> make_blend();

// The names above as users write them: naive-day, naive-week, holt-winters, lag-ridge,
// deviation-ridge, blend.
std::span<const std::string_view> learner_names();
inline constexpr std::string_view kDefaultLearner = "blend";
// nullptr: no such name.
std::unique_ptr<Learner> make_learner(std::string_view name);

}  // namespace kwatt::models::carbon
