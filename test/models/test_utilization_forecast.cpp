#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "models/forecast/backtest.hpp"

namespace kwatt::models::forecast {
namespace {

std::unique_ptr<Forecaster> taught(std::string_view name, const std::vector<double>& values,
                                   ForecasterOptions options = {}) {
  auto forecaster = make_forecaster(name, options);
  REQUIRE(forecaster.has_value());
  for (const double value : values) (*forecaster)->observe(value);
  return std::move(*forecaster);
}

TEST_CASE("each forecast on series whose next step is known") {
  std::vector<double> ramp, spiked, season;
  for (int i = 0; i < 60; ++i) {
    ramp.push_back(10 + 2 * i);
    spiked.push_back(i == 55 ? 900 : 10 + 2 * i);
    season.push_back(i % 10 == 0 ? 80 : 20);
  }
  struct Case {
    std::string_view name;
    const std::vector<double>& values;
    std::size_t lead;
    double want, off;
  };
  for (const Case& one : {
           Case{"naive", ramp, 3, 128, 0.001},
           Case{"seasonal-naive", season, 1, 80, 0.001},
           Case{"seasonal-naive", season, 2, 20, 0.001},
           Case{"seasonal-naive", season, 11, 80, 0.001},
           Case{"robust-trend", ramp, 1, 129.6, 0.001},    // damped: 0.8 of the slope
           Case{"robust-trend", ramp, 100, 136, 0.1},      // at most four steps of it
           Case{"robust-trend", spiked, 1, 129.6, 0.001},  // one spike bends nothing
           Case{"combined", ramp, 1, 129.6, 0.4},
           Case{"combined", season, 1, 80, 1},
           Case{"combined", season, 2, 20, 1},
       }) {
    INFO(std::string(one.name), " ", one.lead);
    const auto forecaster = taught(one.name, one.values, {.season = 10});
    CHECK(std::abs(forecaster->expected(one.lead) - one.want) <= one.off);
  }
}

TEST_CASE("little or nothing known: the last value, or zero; and never below zero") {
  for (const std::string_view name : forecaster_names()) {
    INFO(std::string(name));
    CHECK(taught(name, {})->expected(1) == 0);
    CHECK(taught(name, {42})->expected(7) == doctest::Approx(42));
    CHECK(taught(name, {90, 60, 30, 1})->expected(24) >= 0);
    CHECK(taught(name, {5, 5, 5}, {.season = 0})->expected(2) == doctest::Approx(5));
  }
}

TEST_CASE("headroom: the quantile of the workload's own errors stands above what is expected") {
  auto headroom = Headroom::make("naive", 1, 0.9);
  REQUIRE(headroom.has_value());
  CHECK(headroom->predict().errors == 0);
  // Steps of +1, -1: half of the errors are 1, half are -1.
  for (int i = 0; i < 41; ++i) headroom->observe(i % 2);
  CHECK(headroom->predict().expected == 0);
  CHECK(headroom->predict().upper == doctest::Approx(1));
  CHECK(headroom->predict().errors == 40);
  // A workload that falls only: nothing is added.
  auto falling = Headroom::make("naive", 2, 0.5);
  for (int i = 0; i < 30; ++i) falling->observe(100 - i);
  CHECK(falling->predict().upper == falling->predict().expected);
}

TEST_CASE("what was not measured is bridged and counted, and is no error of the forecast") {
  auto headroom = Headroom::make("naive", 1, 0.9);
  REQUIRE(headroom.has_value());
  headroom->observe(std::numeric_limits<double>::quiet_NaN());
  for (const double value : {10.0, 10.0, std::numeric_limits<double>::quiet_NaN(), -3.0, 10.0}) {
    headroom->observe(value);
  }
  CHECK(headroom->missing() == 3);
  CHECK(headroom->predict().expected == 10);
  CHECK(headroom->predict().errors == 2);
}

TEST_CASE("a backtest counts errors and how often the upper value held") {
  std::vector<double> values;
  std::uint32_t state = 1;
  for (int i = 0; i < 4000; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(20 + static_cast<double>(state >> 8U) / static_cast<double>(1U << 24U) * 10);
  }
  for (const std::string_view name : forecaster_names()) {
    INFO(std::string(name));
    BacktestOptions options;
    options.forecaster = name;
    options.quantile = 0.9;
    const auto score = backtest(values, options);
    REQUIRE(score.has_value());
    CHECK(score->judged == values.size() - options.warm_up - 1);
    CHECK(score->coverage() == doctest::Approx(0.9).epsilon(0.03));
    CHECK(std::abs(score->bias()) < 0.2);
    CHECK(score->mae() < 3.5);
    CHECK(score->mean_headroom() > 2);
  }
  BacktestScore both = *backtest(values, {});
  const std::size_t judged = both.judged;
  both += both;
  CHECK(both.judged == 2 * judged);
  CHECK(BacktestScore().coverage() == 0);
}

TEST_CASE("later values change no earlier forecast") {
  for (const std::string_view name : forecaster_names()) {
    auto one = Headroom::make(name, 3, 0.95, {.season = 12});
    auto other = Headroom::make(name, 3, 0.95, {.season = 12});
    for (int i = 0; i < 50; ++i) {
      one->observe(30 + 10 * std::sin(i));
      other->observe(30 + 10 * std::sin(i));
    }
    const Prediction before = one->predict();
    other->observe(100);
    CHECK(one->predict().expected == before.expected);
    CHECK(one->predict().upper == before.upper);
  }
}

TEST_CASE("what cannot be is refused with what there is") {
  CHECK(make_forecaster("lstm").error().message ==
        "no utilization forecast is called \"lstm\"; there are: naive, seasonal-naive, "
        "robust-trend, combined");
  CHECK_FALSE(make_forecaster("naive", {.season = 1'000'000}).has_value());
  CHECK(Headroom::make("naive", 0, 0.9).error().message ==
        "a lead of 0 steps is not within 1..100000");
  CHECK(Headroom::make("naive", 1, 1.1).error().message ==
        "a quantile of 1.1 is not within 0.5..1");
  const std::vector<double> bad{1, std::numeric_limits<double>::quiet_NaN()};
  CHECK(backtest(bad, {}).error().message ==
        "value 1 of the series is nan: a utilization is a number from 0 on");
}

}  // namespace
}  // namespace kwatt::models::forecast
