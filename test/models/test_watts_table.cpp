#include <doctest/doctest.h>

#include "models/watts_table.hpp"

namespace kwatt::models {
namespace {

TEST_SUITE_BEGIN("telemetry");

// 100 W + 1 W for each percent, seen from 2 % to 80 %.
LearnedPower straight() {
  PowerSamples samples;
  TimePoint at{std::chrono::seconds{1'700'000'000}};
  for (std::int64_t load = 20; load <= 800; load += 10) {
    for (int i = 0; i < 3; ++i, at += std::chrono::seconds{5}) {
      MachineState state;
      state.utilization = state.busy = Permille{load};
      samples.add(state, Milliwatts{100'000 + 100 * load}, at);
    }
  }
  auto model = learn_power(samples.samples());
  REQUIRE(model.has_value());
  return *model;
}

TEST_CASE("steps: none, then eighths of what is free, up to one core at least") {
  const auto steps = extra_steps(Millicores{2000}, Millicores{10'000});
  REQUIRE(steps.size() == 9);
  CHECK(steps.front() == Millicores{0});
  CHECK(steps[1] == Millicores{1000});
  CHECK(steps.back() == Millicores{8000});
  CHECK(extra_steps(Millicores{10'000}, Millicores{10'000}).back() == Millicores{1000});
}

TEST_CASE("learned points: work comes on top of the load, and they end where nothing was seen") {
  MachineState now;
  now.utilization = now.busy = Permille{200};
  const Millicores all{10'000};
  const auto points = learned_points(straight(), now, all, extra_steps(Millicores{2000}, all));
  REQUIRE(points.size() >= 6);
  CHECK(points.size() < 9);
  CHECK(points.front().first == Millicores{0});
  CHECK(static_cast<double>(points.front().second.count()) ==
        doctest::Approx(120'000).epsilon(0.01));
  CHECK(static_cast<double>(points[4].second.count()) == doctest::Approx(160'000).epsilon(0.01));
}

TEST_CASE("learned points: a machine outside of what was seen has none") {
  MachineState now;
  now.utilization = now.busy = Permille{950};
  const Millicores all{10'000};
  CHECK(learned_points(straight(), now, all, extra_steps(Millicores{9500}, all)).empty());
}

TEST_CASE("points: more work does not take less power") {
  const WattsPoints points = never_falling(
      {{Millicores{0}, watts(100)}, {Millicores{1}, watts(90)}, {Millicores{2}, watts(110)}});
  CHECK(points[1].second == watts(100));
  CHECK(points[2].second == watts(110));
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::models
