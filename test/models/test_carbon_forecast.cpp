#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "models/carbon/forecast.hpp"
#include "models/carbon/recursive_ridge.hpp"
#include "test/models/carbon_years.hpp"

namespace kwatt::models::carbon {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::vector<double> regular_hours(std::size_t count) {
  std::vector<double> out;
  for (std::size_t hour = 0; hour < count; ++hour) out.push_back(regular(hour));
  return out;
}

double mean_error(std::string_view learner, const std::vector<double>& all, std::size_t known,
                  std::size_t lead) {
  const TimePoint now = kMonday + hours{static_cast<std::int64_t>(known)};
  const auto forecast = predict_carbon(series_of(all), now, lead, learner);
  REQUIRE(forecast.has_value());
  REQUIRE_MESSAGE(forecast->usable(), forecast->message);
  double sum = 0;
  for (std::size_t i = 0; i < lead; ++i) sum += std::abs(forecast->grams[i] - all[known + i]);
  return sum / static_cast<double>(lead);
}

TEST_CASE("what repeats is foreseen: every learner on a series of known days and weeks") {
  const auto all = regular_hours(kWeek * 12);
  struct Case {
    std::string_view learner;
    std::size_t weeks, day;  // how much is known
    double most;             // grams of mean error over the next day
  };
  for (const Case& one : {
           Case{"naive-day", 8, 2, 0.001},    // Wednesday as Tuesday
           Case{"naive-day", 8, 6, 50.001},   // Sunday is not as Saturday
           Case{"naive-week", 8, 6, 0.001},   // but as the Sunday before
           Case{"holt-winters", 8, 4, 10.0},  // after a Sunday it has returned by Friday
           Case{"lag-ridge", 10, 2, 6.0},
           Case{"lag-ridge", 10, 6, 15.0},  // knows Sundays
           Case{"deviation-ridge", 10, 2, 12.0},
           Case{"blend", 10, 2, 6.0},
       }) {
    INFO(std::string(one.learner), " ", one.weeks, " ", one.day);
    CHECK(mean_error(one.learner, all, one.weeks * kWeek + one.day * kDay, kDay) <= one.most);
  }
}

TEST_CASE(
    "the learners that learn beat yesterday where the wind turns, and the blend is not worse") {
  const auto all = windy(kWeek * 40);
  const auto error = [&](std::string_view learner) {
    auto forecaster = IntensityForecaster::make(learner);
    REQUIRE(forecaster.has_value());
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t hour = 0; hour + kDay < all.size(); ++hour) {
      if (hour > 30 * kWeek) {
        const auto forecast =
            forecaster->forecast(kMonday + hours{static_cast<std::int64_t>(hour)}, kDay);
        for (std::size_t lead = 0; lead < kDay; ++lead, ++count) {
          sum += std::abs(forecast.grams[lead] - all[hour + lead]);
        }
      }
      forecaster->learn_hour(
          kMonday.time_since_epoch() / hours{1} + static_cast<std::int64_t>(hour), all[hour]);
    }
    return sum / static_cast<double>(count);
  };
  const double yesterday = error("naive-day"), ridge = error("lag-ridge"),
               deviation = error("deviation-ridge"), blend = error("blend");
  INFO("naive ", yesterday, " lag ", ridge, " deviation ", deviation, " blend ", blend);
  CHECK(ridge < 0.9 * yesterday);
  CHECK(deviation < 0.9 * yesterday);
  CHECK(blend < 1.05 * std::min(ridge, deviation));
}

TEST_CASE("a forecast of later values changes nothing, whatever the series holds of them") {
  const auto all = windy(kWeek * 6);
  const std::size_t known = kWeek * 5 + 13;
  auto changed = all;
  for (std::size_t i = known; i < changed.size(); ++i) changed[i] = 4999 - changed[i];
  for (const std::string_view learner : learner_names()) {
    INFO(std::string(learner));
    const TimePoint now = kMonday + hours{static_cast<std::int64_t>(known)} + minutes{30};
    const auto one = predict_carbon(series_of(all), now, 48, learner);
    const auto other = predict_carbon(series_of(changed), now, 48, learner);
    REQUIRE((one && other));
    CHECK(one->grams == other->grams);
    CHECK(one->measured == 0);
    CHECK(one->start == kMonday + hours{static_cast<std::int64_t>(known)});
    CHECK(std::all_of(one->grams.begin(), one->grams.end(), [](double g) { return g >= 0; }));
  }
}

TEST_CASE("why there is no forecast: the word and the sentence for the condition") {
  const auto year = regular_hours(kWeek * 2);
  const auto with_gaps = [&](std::size_t from, std::size_t to) {
    auto out = year;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(from),
              out.begin() + static_cast<std::ptrdiff_t>(to), kGap);
    return out;
  };
  struct Case {
    std::vector<double> grams;
    Duration now;  // after the beginning
    Missing missing;
    std::string_view sentence;
  };
  const Duration end = hours{kWeek * 2};
  for (const Case& one : {
           Case{{}, hours{5}, Missing::no_data, "no carbon intensity has been read"},
           Case{year, minutes{59}, Missing::no_data, "no carbon intensity has been read"},
           Case{year, hours{23}, Missing::too_short,
                "23 hours of carbon intensity are known, 24 are needed"},
           Case{year, hours{24}, Missing::none, ""},
           Case{year, end + minutes{119}, Missing::none, ""},
           Case{year, end + minutes{120}, Missing::stale,
                "the newest carbon intensity is of 2024-01-14T23:00:00Z, 2h ago"},
           Case{with_gaps(kWeek * 2 - 14, kWeek * 2 - 1), end, Missing::gaps,
                "of the last 24 hours of carbon intensity only 11 are known"},
           Case{with_gaps(kWeek * 2 - 13, kWeek * 2 - 1), end, Missing::none, ""},
       }) {
    const auto forecast = predict_carbon(series_of(one.grams), kMonday + one.now, 24);
    REQUIRE(forecast.has_value());
    INFO(forecast->message);
    CHECK(to_string(forecast->missing) == to_string(one.missing));

    CHECK(forecast->message == one.sentence);
    CHECK(forecast->usable() == (one.missing == Missing::none));
    CHECK(forecast->grams.size() == (forecast->usable() ? 24 : 0));
  }
  CHECK_FALSE(predict_carbon(series_of(year), kMonday, 24, "tea-leaves").has_value());
  CHECK(predict_carbon(series_of(year), kMonday, 24, "tea-leaves").error().message ==
        "no carbon forecast is called \"tea-leaves\"; there are: naive-day, naive-week, "
        "holt-winters, lag-ridge, deviation-ridge, blend");
}

TEST_CASE("gaps are bridged, and after two weeks of silence all is learned anew") {
  auto all = regular_hours(kWeek * 12);
  for (std::size_t i = 100; i < all.size(); i += 7) all[i] = kGap;
  CHECK(mean_error("naive-day", regular_hours(kWeek * 12), kWeek * 8 + 48, kDay) < 1);
  const auto forecast =
      predict_carbon(series_of(all), kMonday + hours{kWeek * 8 + 48}, kDay, "lag-ridge");
  REQUIRE(forecast.has_value());
  REQUIRE(forecast->usable());
  for (std::size_t i = 0; i < kDay; ++i) {
    CHECK(std::abs(forecast->grams[i] - regular(kWeek * 8 + 48 + i)) < 25);
  }
  auto silent = regular_hours(kWeek * 6);
  std::fill(silent.begin() + kWeek, silent.begin() + 4 * kWeek, kGap);
  const auto fresh = predict_carbon(series_of(silent), kMonday + hours{4 * kWeek + 12}, kDay);
  CHECK(fresh->missing == Missing::too_short);
}

TEST_CASE("series that do not move, or do not emit at all, are forecast as they are") {
  for (const double level : {0.0, 480.0}) {
    const auto all = std::vector<double>(kWeek * 4, level);
    for (const std::string_view learner : learner_names()) {
      const auto forecast =
          predict_carbon(series_of(all), kMonday + hours{kWeek * 4}, 2 * kDay, learner);
      REQUIRE((forecast && forecast->usable()));
      for (const double grams : forecast->grams) CHECK(grams == doctest::Approx(level));
    }
  }
}

TEST_CASE("the mean of a forecast weighs parts of hours by time") {
  Forecast forecast;
  forecast.start = kMonday;
  forecast.grams = {100, 200, 400};
  forecast.missing = Missing::none;
  CHECK(*forecast.mean(kMonday, hours{3}) == doctest::Approx(700.0 / 3));
  CHECK(*forecast.mean(kMonday + minutes{30}, hours{1}) == doctest::Approx(150));
  CHECK(*forecast.mean(kMonday + minutes{150}, minutes{30}) == doctest::Approx(400));
  CHECK_FALSE(forecast.mean(kMonday + minutes{150}, minutes{31}));
  CHECK_FALSE(forecast.mean(kMonday - minutes{1}, minutes{30}));
  CHECK_FALSE(forecast.mean(kMonday, Duration{0}));
}

TEST_CASE("the recursive ridge finds the coefficients, and forgets what is no longer so") {
  RecursiveRidge ridge(2, 1, 1e-6, 0.9);
  const auto teach = [&](double slope, double offset) {
    for (int i = 0; i < 200; ++i) {
      const std::array<double, 2> x{1, std::sin(i)};
      const std::array<double, 1> y{offset + slope * x[1]};
      ridge.learn(x, y);
    }
  };
  const auto says = [&](double x) {
    std::array<double, 1> y{};
    ridge.predict(std::array<double, 2>{1, x}, y);
    return y[0];
  };
  teach(3, 7);
  CHECK(says(2) == doctest::Approx(13));
  teach(-1, 0);
  CHECK(says(2) == doctest::Approx(-2).epsilon(0.001));
  RecursiveRidge believing(1, 1, 1, 1);
  believing.believe(0, 0, 0.5);
  std::array<double, 1> y{};
  believing.predict(std::array<double, 1>{4}, y);
  CHECK(y[0] == 2);
}

}  // namespace
}  // namespace kwatt::models::carbon
