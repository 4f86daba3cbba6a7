#include <random>

#include <doctest/doctest.h>

#include "models/power_fit.hpp"

namespace kwatt::models {
namespace {

std::vector<LoadPoint> measured(const PowerCurve& curve, std::int64_t from, std::int64_t to,
                                int count, double noise = 0) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> off(-noise, noise);
  std::vector<LoadPoint> points;
  for (int i = 0; i < count; ++i) {
    const Permille load{from + (to - from) * i / std::max(1, count - 1)};
    const auto milliwatts = static_cast<double>(curve.at(load).count()) * (1 + off(random));
    points.push_back({load, Milliwatts{static_cast<std::int64_t>(milliwatts)}});
  }
  return points;
}

PowerCurve line(std::int64_t idle, std::int64_t maximum) {
  api::PowerModelSpec spec;
  spec.idle_milliwatts = idle;
  spec.max_milliwatts = maximum;
  return model_of(spec, Millicores{8000}).curve;
}

TEST_SUITE("telemetry") {
  TEST_CASE("a line is found again, and extended beyond where it was measured") {
    const auto fit = fit_power(measured(line(100'000, 300'000), 100, 400, 40));
    REQUIRE(fit.has_value());
    CHECK(fit->error_permille == 0);
    CHECK(fit->points == 40);
    CHECK(fit->lowest == Permille{100});
    CHECK(fit->highest == Permille{400});
    CHECK(std::abs(fit->curve.idle().count() - 100'000) < 100);
    CHECK(std::abs(fit->curve.maximum().count() - 300'000) < 300);
  }

  TEST_CASE("a server's own shape is found again, where a line would be off") {
    const PowerCurve server = model_of({}, Millicores{64'000}).curve;
    const auto fit = fit_power(measured(server, 0, 1000, 101));
    REQUIRE(fit.has_value());
    CHECK(fit->error_permille <= 1);
    for (std::int64_t load = 0; load <= 1000; load += 100) {
      CAPTURE(load);
      CHECK(std::abs((fit->curve.at(Permille{load}) - server.at(Permille{load})).count()) < 500);
    }
  }

  TEST_CASE("the error is that of the points: 10 % of noise is about 5 % on average") {
    const auto fit = fit_power(measured(line(100'000, 300'000), 0, 1000, 200, 0.10));
    REQUIRE(fit.has_value());
    CHECK(fit->error_permille > 35);
    CHECK(fit->error_permille < 65);
  }

  TEST_CASE("a fit never falls with the load") {
    std::mt19937 random(11);
    std::uniform_int_distribution<std::int64_t> load(0, 1000), power(50'000, 400'000);
    int fitted = 0;
    for (int round = 0; round < 200; ++round) {
      std::vector<LoadPoint> points;
      for (int i = 0; i < 40; ++i)
        points.push_back({Permille{load(random)}, Milliwatts{power(random)}});
      const auto fit = fit_power(points);
      if (!fit) continue;
      ++fitted;
      CHECK(fit->curve.idle() >= Milliwatts{0});
      for (std::int64_t at = 1; at <= 1000; ++at) {
        REQUIRE(fit->curve.at(Permille{at}) >= fit->curve.at(Permille{at - 1}));
      }
    }
    CHECK(fitted > 50);
  }

  TEST_CASE("too little to go by is no fit, with the reason") {
    struct Case {
      const char* name;
      std::vector<LoadPoint> points;
      const char* reason;
    };
    std::vector<LoadPoint> unpowered = measured(line(100'000, 300'000), 0, 1000, 40);
    unpowered[3].power = Milliwatts{0};
    std::vector<LoadPoint> falling = measured(line(100'000, 300'000), 0, 1000, 40);
    for (LoadPoint& point : falling) point.load = Permille{1000} - point.load;
    const Case cases[] = {
        {"none", {}, "0 points measured"},
        {"29 points", measured(line(1000, 2000), 0, 1000, 29), "29 points measured"},
        {"one load", measured(line(1000, 2000), 300, 300, 40), "only at loads of 300 to 300"},
        {"nearly one load", measured(line(1000, 2000), 300, 499, 40),
         "only at loads of 300 to 499"},
        {"without power", unpowered, "without power"},
        {"falling", falling, "does not rise"},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      const auto fit = fit_power(c.points);
      REQUIRE_FALSE(fit.has_value());
      CHECK(fit.error().code == ErrorCode::unsupported);
      CHECK_MESSAGE(fit.error().message.find(c.reason) != std::string::npos, fit.error().message);
    }
  }

  TEST_CASE("days of idling do not push out what was measured under load") {
    LoadHistory history;
    for (int load = 0; load <= 1000; load += 20)
      history.add({Permille{load}, watts(100 + load / 10)});
    const std::size_t before = history.size();
    for (int i = 0; i < 100'000; ++i) history.add({Permille{5}, watts(100)});
    CHECK(history.size() < before + LoadHistory::kEach);
    const auto points = history.points();
    CHECK(points.back().load == Permille{1000});
    CHECK(fit_power(points).has_value());
    history.add({Permille{-1}, watts(1)});
    history.add({Permille{1001}, watts(1)});
    history.add({Permille{10}, Milliwatts{0}});
    CHECK(history.points().size() == points.size());
  }
}

}  // namespace
}  // namespace kwatt::models
