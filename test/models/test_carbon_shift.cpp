#include <limits>

#include <doctest/doctest.h>

#include "models/carbon/shift_trial.hpp"
#include "test/models/carbon_years.hpp"

namespace kwatt::models::carbon {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

Forecast forecast_of(std::vector<double> grams) {
  Forecast out;
  out.start = kMonday;
  out.grams = std::move(grams);
  out.missing = Missing::none;
  out.message.clear();
  return out;
}

ShiftableJob job_of(Duration length, Duration deadline) {
  ShiftableJob job;
  job.now = kMonday;
  job.length = length;
  job.deadline = kMonday + deadline;
  return job;
}

TEST_CASE("a job starts where the mean over its whole length is least, within its deadline") {
  const Forecast forecast = forecast_of({300, 300, 100, 300, 200, 200, 200, 50});
  struct Case {
    std::string_view name;
    Duration length, deadline, start;
    ShiftReason reason;
    double grams;
  };
  for (const Case& one : {
           Case{"the lowest hour", hours{1}, hours{8}, hours{7}, ShiftReason::cleaner_later, 50},
           Case{"within the deadline", hours{1}, hours{7}, hours{2}, ShiftReason::cleaner_later,
                100},
           Case{"not the lowest hour alone", hours{3}, hours{8}, hours{5},
                ShiftReason::cleaner_later, 150},
           Case{"ended by the deadline, not started", hours{3}, hours{7}, hours{2},
                ShiftReason::cleaner_later, 200},
           Case{"no room", hours{2}, minutes{179}, hours{0}, ShiftReason::now_is_best, 300},
           Case{"exactly in time", hours{2}, hours{2}, hours{0}, ShiftReason::now_is_best, 300},
           Case{"deadline shorter than the job", hours{4}, hours{3}, hours{0},
                ShiftReason::deadline_short, 250},
           Case{"deadline in the past", hours{2}, hours{-1}, hours{0}, ShiftReason::deadline_short,
                300},
           Case{"longer than the forecast", hours{9}, hours{24}, hours{0}, ShiftReason::no_forecast,
                0},
           Case{"half an hour", minutes{30}, hours{3}, hours{2}, ShiftReason::cleaner_later, 100},
       }) {
    INFO(std::string(one.name));
    const auto decision = choose_start(forecast, job_of(one.length, one.deadline));
    REQUIRE(decision.has_value());
    CHECK(to_string(decision->reason) == to_string(one.reason));
    CHECK(decision->chosen.start == kMonday + one.start);
    CHECK(decision->chosen.grams_per_kwh == doctest::Approx(one.grams));
    CHECK(decision->start_now == (one.start == Duration{0}));
  }
}

TEST_CASE("of equal starts the earliest counts, and what is gained must be worth the wait") {
  CHECK(choose_start(forecast_of({200, 200, 200}), job_of(hours{1}, hours{3}))->start_now);
  ShiftableJob job = job_of(hours{1}, hours{3});
  job.energy_kwh = 2.5;
  const Forecast forecast = forecast_of({200, 190, 180});
  auto decision = choose_start(forecast, job);
  CHECK(decision->saved_grams == doctest::Approx(50));
  CHECK(decision->message ==
        "waits until 2024-01-01T02:00:00Z: 180 g/kWh instead of 200, saves 50.0 g of CO2");
  REQUIRE(decision->alternatives.size() == 2);
  CHECK(decision->alternatives[0].start == kMonday + hours{1});
  CHECK(decision->alternatives[1].grams == doctest::Approx(500));
  job.least_saving = 0.1;
  CHECK(choose_start(forecast, job)->reason == ShiftReason::cleaner_later);
  job.least_saving = 0.11;
  decision = choose_start(forecast, job);
  CHECK(decision->reason == ShiftReason::not_worth_it);
  CHECK(decision->start_now);
  CHECK(decision->saved_grams == 0);
}

TEST_CASE("without a forecast a job starts at once, and says why") {
  Forecast none;
  none.missing = Missing::stale;
  none.message = "the newest carbon intensity is old";
  const auto decision = choose_start(none, job_of(hours{1}, hours{24}));
  REQUIRE(decision.has_value());
  CHECK(decision->start_now);
  CHECK(decision->chosen.start == kMonday);
  CHECK(decision->message == "starts at once: the newest carbon intensity is old");
  CHECK_FALSE(decision->at_once.has_value());
}

TEST_CASE("in the middle of an hour a job may start at once or at the next whole hours") {
  ShiftableJob job = job_of(hours{1}, hours{3});
  job.now = kMonday + minutes{30};
  const auto decision = choose_start(forecast_of({100, 300, 100, 100}), job);
  CHECK(decision->chosen.start == kMonday + hours{2});
  CHECK(decision->at_once->grams_per_kwh == doctest::Approx(200));
}

TEST_CASE("time and place together: where the job emits least, with what moving it costs") {
  Forecast stale;
  stale.missing = Missing::stale;
  const auto places = [&](double move, double factor) {
    return std::vector<Place>{{"DE", forecast_of({400, 300, 200}), 1, 0},
                              {"PL", stale, 1, 0},
                              {"FR", forecast_of({60, 50, 90}), factor, move}};
  };
  struct Case {
    std::string_view name;
    double move, factor;
    Duration deadline;
    std::size_t place;
    Duration start;
    ShiftReason reason;
    double saved;
  };
  for (const Case& one : {
           Case{"elsewhere and later", 0, 1, hours{3}, 2, hours{1}, ShiftReason::cleaner_later,
                350},
           Case{"elsewhere at once", 0, 1, hours{1}, 2, hours{0}, ShiftReason::cleaner_elsewhere,
                340},
           Case{"moving costs too much", 180, 1, hours{3}, 0, hours{2}, ShiftReason::cleaner_later,
                200},
           Case{"older machines there", 0, 5, hours{3}, 0, hours{2}, ShiftReason::cleaner_later,
                200},
           Case{"nothing is better", 350, 1, hours{1}, 0, hours{0}, ShiftReason::now_is_best, 0},
       }) {
    INFO(std::string(one.name));
    const auto decision =
        choose_place_and_start(places(one.move, one.factor), job_of(hours{1}, one.deadline));
    REQUIRE(decision.has_value());
    CHECK(decision->chosen.place == one.place);
    CHECK(decision->chosen.start == kMonday + one.start);
    CHECK(to_string(decision->reason) == to_string(one.reason));
    CHECK(decision->saved_grams == doctest::Approx(one.saved));
  }
  CHECK(choose_place_and_start(places(0, 1), job_of(hours{1}, hours{1}))->message ==
        "starts at once in FR: 60 g/kWh instead of 400, saves 340.0 g of CO2");
  // Nothing is known of where the job is: what is known elsewhere still counts, the saving does
  // not.
  const auto away = choose_place_and_start({{"PL", stale, 1, 0}, {"FR", forecast_of({60}), 1, 0}},
                                           job_of(hours{1}, hours{1}));
  CHECK(away->chosen.place == 1);
  CHECK_FALSE(away->at_once.has_value());
  CHECK(away->saved_grams == 0);
}

TEST_CASE("a job that cannot be is refused") {
  const auto refused = [](const ShiftableJob& job, std::vector<Place> places) {
    const auto decision = choose_place_and_start(places, job);
    REQUIRE_FALSE(decision.has_value());
    CHECK(decision.error().code == ErrorCode::invalid_argument);
    return decision.error().message;
  };
  const std::vector<Place> home{{"", forecast_of({1}), 1, 0}};
  ShiftableJob job = job_of(hours{0}, hours{1});
  CHECK(refused(job, home) == "a job's length must be positive, not 0s");
  job.length = hours{1};
  job.energy_kwh = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused(job, home) == "a job's energy must be positive, not nan kWh");
  job.energy_kwh = 1;
  job.least_saving = 1.5;
  CHECK(refused(job, home) == "the least saving must be within 0 and 1, not 1.5");
  job.least_saving = 0;
  CHECK(refused(job, {}) == "a job needs at least one place to run");
  CHECK(
      refused(job, {{"X", forecast_of({1}), 0, 0}}).starts_with("place \"X\": its energy factor"));
}

TEST_CASE("the oracle of a trial is the best start of each job, computed by hand") {
  // Two days: 10 in each hour but 4 at hour 30, jobs of one hour within 6.
  std::vector<double> grams(48, 10);
  grams[30] = 4;
  ShiftTrial trial;
  trial.learner = "naive-day";
  trial.length = hours{1};
  trial.deadline = hours{6};
  trial.from = kMonday + hours{24};
  trial.to = kMonday + hours{36};
  const auto score = try_shifting(series_of(grams), trial);
  REQUIRE(score.has_value());
  CHECK(score->jobs == 12);
  CHECK(score->at_once == doctest::Approx((11 * 10 + 4) / 12.0));
  CHECK(score->oracle == doctest::Approx((6 * 10 + 6 * 4) / 12.0));  // arrivals 25 to 30
  CHECK(score->chosen == score->at_once);                            // yesterday had no such hour
  CHECK(score->saving() == 0);
  CHECK(score->ratio() == 0);
}

TEST_CASE(
    "deciding again each hour is what a learner gains from, and no start is past the deadline") {
  const auto series = series_of(windy(kWeek * 30));
  ShiftTrial trial;
  trial.from = kMonday + hours{kWeek * 20};
  trial.to = kMonday + hours{kWeek * 30};
  std::vector<ShiftedJob> jobs;
  const auto again = try_shifting(series, trial, &jobs);
  trial.decide_again = false;
  const auto once = try_shifting(series, trial);
  REQUIRE((again && once));
  INFO("again ", again->ratio(), " once ", once->ratio());
  CHECK(again->ratio() > 0.85);
  CHECK(again->ratio() > once->ratio() - 0.005);
  CHECK(again->ratio() <= 1);
  CHECK(jobs.size() == again->jobs);
  for (const ShiftedJob& job : jobs) {
    REQUIRE(job.start >= job.arrival);
    REQUIRE(job.start <= job.arrival + hours{20});
  }
}

TEST_CASE("altering the future alters no decision taken before") {
  const auto grams = windy(kWeek * 16);
  const std::size_t split = kWeek * 14 + 5;
  auto other = grams;
  for (std::size_t i = split; i < other.size(); ++i) other[i] = 600 - grams[i];
  for (const std::string_view learner : learner_names()) {
    INFO(std::string(learner));
    ShiftTrial trial;
    trial.learner = learner;
    trial.from = kMonday + hours{kWeek * 13};
    trial.to = kMonday + hours{kWeek * 16};
    std::vector<ShiftedJob> one, two;
    REQUIRE(try_shifting(series_of(grams), trial, &one).has_value());
    REQUIRE(try_shifting(series_of(other), trial, &two).has_value());
    const TimePoint from = kMonday + hours{static_cast<std::int64_t>(split)};
    std::size_t before = 0, different = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      // Starts up to then were decided on hours before it.
      if (one[i].start <= from || two[i].start <= from) {
        ++before;
        CHECK(one[i] == two[i]);
      } else {
        different += one[i] == two[i] ? 0 : 1;
      }
    }
    CHECK(before > kWeek - kDay);
    CHECK(different > 0);
  }
}

TEST_CASE("a trial that proves nothing is refused") {
  auto grams = windy(kWeek * 3);
  ShiftTrial trial;
  trial.from = kMonday + hours{kWeek * 2};
  trial.to = kMonday + hours{kWeek * 3};
  const auto refused = [&](const IntensitySeries& series) {
    const auto score = try_shifting(series, trial);
    REQUIRE_FALSE(score.has_value());
    return score.error().message;
  };
  trial.learner = "oracle";
  CHECK(refused(series_of(grams)).starts_with("no carbon forecast is called \"oracle\""));
  trial.learner = "blend";
  trial.length = minutes{90};
  CHECK(refused(series_of(grams)).starts_with("jobs of a trial take whole hours"));
  trial.length = hours{4};
  grams[kWeek * 2 + 50] = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused(series_of(grams)) ==
        "the series has a gap at 2024-01-17T02:00:00Z, within the trial");
  trial.from = trial.to;
  CHECK(refused(series_of(grams)) == "no job of the trial ends within the series");
}

}  // namespace
}  // namespace kwatt::models::carbon
