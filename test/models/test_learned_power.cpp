#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "models/learned_power.hpp"

namespace kwatt::models {
namespace {

const TimePoint kStart{std::chrono::seconds{1'700'000'000}};

// A machine of our own: 100 W, 150 W more with all cycles used, 40 W for busy time, bent.
double true_watts(double utilization, double busy) {
  return 100 + 110 * utilization + 40 * utilization * utilization + 40 * busy;
}
MachineState state(std::int64_t utilization, std::int64_t busy) {
  MachineState out;
  out.utilization = Permille{utilization};
  out.busy = Permille{busy};
  return out;
}

// Steady loads, each for six measurements 5 s apart, at full and at half frequency; every tenth
// measurement a wild one if `outliers`.
PowerSamples measured(bool outliers, std::size_t steps = 60) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 1);
  PowerSamples samples;
  TimePoint at = kStart;
  int count = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::int64_t busy = 20 + static_cast<std::int64_t>(random() % 960);
    const std::int64_t utilization = step % 3 == 0 ? busy / 2 : busy;
    for (int i = 0; i < 6; ++i) {
      double watts =
          true_watts(static_cast<double>(utilization) / 1000, static_cast<double>(busy) / 1000) +
          noise(random);
      if (outliers && ++count % 10 == 0) watts *= 3;
      samples.add(state(utilization, busy), Milliwatts{std::llround(watts * 1000)}, at);
      at += std::chrono::seconds{5};
    }
  }
  return samples;
}

double worst_error(const LearnedPower& model) {
  double worst = 0;
  for (std::int64_t busy = 100; busy <= 900; busy += 50) {
    for (const std::int64_t utilization : {busy, busy / 2}) {
      const double want =
          true_watts(static_cast<double>(utilization) / 1000, static_cast<double>(busy) / 1000);
      const LearnedEstimate estimate = model.at(state(utilization, busy));
      CHECK(estimate.in_range);
      worst = std::max(worst,
                       std::abs(static_cast<double>(estimate.power.count()) / 1000 - want) / want);
    }
  }
  return worst;
}

TEST_SUITE_BEGIN("telemetry");

TEST_CASE("learned power: a bent machine at two frequencies is learned") {
  const auto model = learn_power(measured(false).samples());
  REQUIRE(model.has_value());
  CHECK(worst_error(*model) < 0.02);
  CHECK(model->form().starts_with("quadratic in utilization, busy"));
  CHECK(model->error_permille() <= 15);
  CHECK(model->error_permille() <= model->bound_permille());
  CHECK(model->lowest() < Permille{100});
  CHECK(model->highest() > Permille{900});
}

TEST_CASE("learned power: a meter that is wrong every tenth time does not bend it") {
  const auto model = learn_power(measured(true).samples());
  REQUIRE(model.has_value());
  CHECK(worst_error(*model) < 0.03);
}

TEST_CASE("learned power: where nothing was measured it says so and does not run away") {
  PowerSamples samples;
  TimePoint at = kStart;
  for (int step = 0; step < 60; ++step) {
    const std::int64_t load = 100 + 5 * step;  // 10 % to 39.5 %
    for (int i = 0; i < 3; ++i, at += std::chrono::seconds{5}) {
      samples.add(state(load, load),
                  Milliwatts{std::llround(1000 * true_watts(static_cast<double>(load) / 1000,
                                                            static_cast<double>(load) / 1000))},
                  at);
    }
  }
  const auto model = learn_power(samples.samples());
  REQUIRE(model.has_value());
  const LearnedEstimate inside = model->at(state(390, 390)), beyond = model->at(state(900, 900));
  CHECK(inside.in_range);
  CHECK_FALSE(beyond.in_range);
  CHECK(std::abs((beyond.power - inside.power).count()) < 5'000);
}

TEST_CASE("learned power: same samples, same model") {
  const auto a = learn_power(measured(true).samples()), b = learn_power(measured(true).samples());
  for (std::int64_t load = 0; load <= 1000; load += 10) {
    CHECK(a->at(state(load, load)).power == b->at(state(load, load)).power);
  }
}

TEST_CASE("learned power: what is missing is said") {
  CHECK(learn_power({}).error().message == "0 of 40 measurements at a steady load so far");
  PowerSamples idle;
  for (int i = 0; i < 400; ++i) {
    idle.add(state(20 + 60 * (i / 100) / 2, 20), watts(100), kStart + std::chrono::seconds{5 * i});
  }
  LearnLimits few;
  few.samples = 10;
  const auto model = learn_power(idle.samples(), few);
  REQUIRE_FALSE(model.has_value());
  CHECK(model.error().code == ErrorCode::unsupported);
  CHECK(model.error().message == "the load was only seen between 2.0 % and 11.0 %");
}

TEST_CASE("learned power: an input that is missing later is taken as it was on average") {
  PowerSamples samples;
  TimePoint at = kStart;
  for (int step = 0; step < 80; ++step) {
    MachineState warm = state(10 * (step % 90) + 20, 10 * (step % 90) + 20);
    warm.cpu = Millicelsius{40'000 + 200 * (step % 90)};
    for (int i = 0; i < 3; ++i, at += std::chrono::seconds{5}) {
      samples.add(warm, watts(100 + step % 90), at);
    }
  }
  const auto model = learn_power(samples.samples());
  REQUIRE(model.has_value());
  CHECK(model->form().find("cpu temperature") != std::string::npos);
  CHECK(model->at(state(400, 400)).power > watts(80));
}

TEST_CASE("samples: only steady moments are kept") {
  CHECK(PowerSamples::steady(Permille{300}, Permille{320}));
  CHECK(PowerSamples::steady(Permille{2}, Permille{10}));
  CHECK_FALSE(PowerSamples::steady(Permille{300}, Permille{400}));
  PowerSamples samples;
  samples.add(state(300, 300), watts(150), kStart);  // nothing to compare with
  CHECK(samples.size() == 0);
  samples.add(state(305, 305), watts(150), kStart + std::chrono::seconds{5});
  CHECK(samples.size() == 1);
  samples.add(state(800, 800), watts(250), kStart + std::chrono::seconds{10});
  CHECK(samples.size() == 1);
  samples.add(state(800, 800), watts(250), kStart + std::chrono::seconds{10});  // again
  CHECK(samples.size() == 1);
  samples.add(state(800, 800), watts(250), kStart + std::chrono::minutes{10});  // after a gap
  CHECK(samples.size() == 1);
  samples.add(state(800, 800), watts(0), kStart + std::chrono::minutes{10} + Duration{5000});
  samples.add(state(1800, 800), watts(90), kStart + std::chrono::minutes{10} + Duration{9000});
  CHECK(samples.size() == 1);
}

TEST_CASE("samples: bounded, and idle days do not push the busy hour out") {
  PowerSamples samples = measured(false, 400);
  CHECK(samples.size() <= PowerSamples::kSpans * PowerSamples::kEach);
  const auto busy = [](const PowerSamples& all) {
    int count = 0;
    for (const PowerSample& sample : all.samples()) count += sample.inputs[0] > 0.5F ? 1 : 0;
    return count;
  };
  const int before = busy(samples);
  REQUIRE(before > 20);
  TimePoint at = kStart + std::chrono::hours{24};
  for (int i = 0; i < 20'000; ++i, at += std::chrono::seconds{5}) {
    samples.add(state(10, 10), watts(101), at);
  }
  CHECK(busy(samples) == before);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::models
