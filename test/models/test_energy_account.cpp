#include <random>

#include <doctest/doctest.h>

#include "models/energy_account.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::models;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;

  TEST_CASE("energy: power held over time, exact to a millijoule") {
    struct Case {
      const char* name;
      std::int64_t milliwatts;
      Duration elapsed;
      std::int64_t millijoules;
    };
    const Case cases[] = {
        {"a watt for a second", 1000, seconds{1}, 1000},
        {"a part of a second", 1500, Duration{10}, 15},
        {"below a millijoule", 99, Duration{10}, 0},
        {"no time", 1000, Duration{0}, 0},
        {"a clock set back", 1000, seconds{-5}, 0},
        {"100 kW for ten years does not overflow", 100'000'000, hours{24 * 3652},
         100'000'000LL * 24 * 3652 * 3600},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      const EnergyPair energy = held({Milliwatts{c.milliwatts}, Milliwatts{0}}, c.elapsed);
      CHECK(energy.actual.count() == c.millijoules);
      CHECK(energy.baseline.count() == 0);
    }
  }

  TEST_CASE("energy: a gap claims nothing, and a cost in it is counted for a bounded time") {
    const PowerPair saving{watts(20), watts(120)}, cost{watts(320), watts(120)};
    CHECK(saved_over(saving, seconds{60}, minutes{1}).count() == 100'000 * 60);
    CHECK(saved_over(saving, seconds{61}, minutes{1}).count() == 0);
    CHECK(saved_over(cost, seconds{60}, minutes{1}).count() == -200'000 * 60);
    CHECK(saved_over(cost, hours{5}, minutes{1}).count() == -200'000 * 60);
    CHECK(saved_over(saving, seconds{-10}, minutes{1}).count() == 0);
  }

  TEST_CASE(
      "energy: the worked case of the documentation comes out to the watt-hour and the gram") {
    // A machine of 120 W idle: off for 50 minutes at 5 W standby, then 2 minutes of boot at 240 W.
    const std::int64_t off = saved_over({watts(5), watts(120)}, minutes{50}, hours{1}).count();
    const std::int64_t boot = saved_over({watts(240), watts(120)}, minutes{2}, hours{1}).count();
    CHECK(off == 115'000LL * 50 * 60);
    CHECK(boot == -120'000LL * 2 * 60);
    const Whole watt_hours =
        carry(carry({}, off, kMillijoulesPerWattHour), boot, kMillijoulesPerWattHour);
    CHECK(watt_hours == Whole{91, 3'000'000});  // 95.83 Wh - 4 Wh = 91.83 Wh
    const std::int64_t micrograms = micrograms_co2(Millijoules{off + boot}, 400);
    CHECK(carry({}, micrograms, kMicrogramsPerGram) == Whole{36, 733'333});  // 36.73 g
  }

  TEST_CASE("energy: the rest is never negative, the whole may be") {
    struct Case {
      Whole before;
      std::int64_t more;
      Whole after;
    };
    const Case cases[] = {{{0, 0}, 10, {0, 10}},   {{0, 90}, 10, {1, 0}},
                          {{0, 0}, -1, {-1, 99}},  {{-1, 99}, 1, {0, 0}},
                          {{5, 50}, -250, {3, 0}}, {{5, 50}, 1000, {15, 50}},
                          {{2, 0}, -201, {-1, 99}}};
    for (const Case& c : cases) CHECK(carry(c.before, c.more, 100) == c.after);
  }

  TEST_CASE("energy: cut into pieces at any moment, the sum is the same but for the rounding") {
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U}) {
      std::mt19937 random(seed);
      const auto below = [&](std::int64_t limit) {
        return std::uniform_int_distribution<std::int64_t>(0, limit)(random);
      };
      for (int round = 0; round < 200; ++round) {
        const PowerPair power{Milliwatts{below(500'000)}, Milliwatts{below(500'000)}};
        Whole sum{};
        Duration whole{0};
        const int pieces = 1 + static_cast<int>(below(50));
        for (int i = 0; i < pieces; ++i) {
          const Duration piece{below(60'000)};
          whole += piece;
          sum = carry(sum, saved_over(power, piece, minutes{1}).count(), kMillijoulesPerWattHour);
          CHECK(sum.rest >= 0);
          CHECK(sum.rest < kMillijoulesPerWattHour);
        }
        const std::int64_t total = sum.units * kMillijoulesPerWattHour + sum.rest;
        const std::int64_t exact = held(power, whole).saved().count();
        CHECK(std::abs(total - exact) <= pieces + 1);
        // Nothing is counted twice: the saving stays within what would have been drawn and what
        // was.
        CHECK(total <= held(power, whole).baseline.count() + pieces);
        CHECK(total >= -held(power, whole).actual.count() - pieces);
      }
    }
  }
}
