#include <doctest/doctest.h>

#include "planner/levers.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::kNoon;
using test::World;
using namespace std::chrono_literals;

NodeView with(std::vector<TelemetrySample> samples) {
  World w;
  w.node("n1");
  NodeView node = w.snapshot().nodes.at("n1");
  node.samples = std::move(samples);
  return node;
}

TelemetrySample sample(Duration age, std::int64_t utilization, std::int64_t watts_or_none = -1) {
  const bool has_power = watts_or_none >= 0;
  return {kNoon - age, percent(utilization), percent(utilization / 2),
          has_power ? watts(watts_or_none) : Milliwatts{}, has_power};
}

TEST_CASE("the mean covers the newest window and nothing before it") {
  const NodeView node = with({sample(40s, 100, 500), sample(30s, 100, 500), sample(20s, 10, 100),
                              sample(10s, 20, 200), sample(0s, 30, 300)});
  const auto mean = window_mean(node, 30s, kNoon);
  REQUIRE(mean.has_value());
  CHECK(mean->utilization == percent(20));
  CHECK(mean->busy == percent(10));
  CHECK(mean->power == watts(200));
  CHECK(mean->has_power);
}

TEST_CASE("there is no mean without samples, with stale ones, or before the window is covered") {
  struct Case {
    const char* name;
    std::vector<TelemetrySample> samples;
    Duration window;
    bool known;
  };
  const Case cases[] = {
      {"none", {}, 30s, false},
      {"the newest is 31 s old", {sample(51s, 5), sample(41s, 5), sample(31s, 5)}, 10s, false},
      {"the newest is 30 s old", {sample(50s, 5), sample(40s, 5), sample(30s, 5)}, 10s, true},
      {"a slow source may be older", {sample(240s, 5), sample(120s, 5), sample(60s, 5)}, 60s, true},
      {"they began too late", {sample(20s, 5), sample(10s, 5), sample(0s, 5)}, 60s, false},
      {"a period short of the window is enough",
       {sample(20s, 5), sample(10s, 5), sample(0s, 5)},
       30s,
       true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(window_mean(with(c.samples), c.window, kNoon).has_value() == c.known);
  }
}

TEST_CASE("watts are the mean of the samples that have them") {
  auto mean =
      window_mean(with({sample(20s, 5, 100), sample(10s, 5), sample(0s, 5, 200)}), 30s, kNoon);
  REQUIRE(mean.has_value());
  CHECK(mean->power == watts(150));
  mean = window_mean(with({sample(20s, 5), sample(10s, 5), sample(0s, 5)}), 30s, kNoon);
  REQUIRE(mean.has_value());
  CHECK_FALSE(mean->has_power);
}

TEST_CASE("a sample is stale after three periods, at least 30 s") {
  CHECK(stale_after(with({})) == 30s);
  CHECK(stale_after(with({sample(0s, 5)})) == 30s);
  CHECK(stale_after(with({sample(10s, 5), sample(5s, 5)})) == 30s);
  CHECK(stale_after(with({sample(80s, 5), sample(20s, 5)})) == 180s);
}

// A sample of a meter alone.
TelemetrySample metered(Duration age, std::int64_t of_watts) {
  return {kNoon - age, {}, {}, watts(of_watts), true, false};
}

TEST_SUITE("telemetry") {
  TEST_CASE("a meter without an agent gives a mean of power and none of load") {
    NodeView node = with({metered(40s, 100), metered(25s, 200), metered(10s, 300)});
    node.newest.power_until = kNoon + 35s;
    CHECK_FALSE(window_mean(node, 20s, kNoon).has_value());
    const auto mean = power_window_mean(node, 20s, kNoon);
    REQUIRE(mean.has_value());
    CHECK(mean->power == watts(250));
    CHECK_FALSE(mean->has_utilization);
    CHECK(samples_believed(node, kNoon));
    CHECK(power_window_mean(node, 20s, kNoon + 35s).has_value());
    CHECK_FALSE(power_window_mean(node, 20s, kNoon + 36s).has_value());
    CHECK_FALSE(samples_believed(node, kNoon + 36s));
  }

  TEST_CASE("a meter that goes on does not make an old utilization believed") {
    std::vector<TelemetrySample> samples;
    for (Duration age = 120s; age >= 0s; age -= 10s) {
      TelemetrySample s = sample(age, 5, 100);
      s.has_utilization = s.at <= kNoon - 30s;  // its source ended long before
      samples.push_back(s);
    }
    NodeView node = with(samples);
    node.newest.utilization_until = kNoon - 30s;
    node.newest.power_until = kNoon + 30s;
    CHECK_FALSE(window_mean(node, 60s, kNoon).has_value());
    CHECK(power_window_mean(node, 60s, kNoon).has_value());
    CHECK_FALSE(samples_believed(node, kNoon));
    CHECK(believed_load(node, kNoon) == nullptr);
    CHECK(believed_power(node, kNoon)->at == kNoon);
  }
}

}  // namespace
}  // namespace kwatt::planner
