#include <doctest/doctest.h>

#include "telemetry/sample_store.hpp"

using namespace kwatt;
using namespace kwatt::telemetry;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {
const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");
Sample sample(Duration after, std::int64_t permille, std::optional<std::int64_t> milliwatts = {}) {
  Sample s{.at = kStart + after,
           .utilization = Permille{permille},
           .busy = Permille{permille},
           .power = std::nullopt};
  if (milliwatts) s.power = Milliwatts{*milliwatts};
  return s;
}
}  // namespace

TEST_CASE("sample store: samples within one resolution step are averaged") {
  SampleStore store;
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(store.add("n1", sample(seconds{i}, 100 * i, 1000 * i), kStart + seconds{i}));
  }
  CHECK_FALSE(store.add("n1", sample(seconds{5}, 900), kStart + seconds{5}));
  const auto samples = store.samples("n1");
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].utilization == Permille{200});
  CHECK(*samples[0].power == Milliwatts{2000});
  CHECK(samples[0].at == kStart + seconds{4});
  CHECK(samples[1].utilization == Permille{900});
  CHECK_FALSE(samples[1].power.has_value());
}

TEST_CASE("sample store: what cannot be true is refused with its reason") {
  struct Case {
    const char* name;
    Sample given;
    Refusal want;
  };
  const Case cases[] = {
      {"the same time again", sample(seconds{0}, 1), Refusal::out_of_order},
      {"an older time", sample(seconds{-1}, 1), Refusal::out_of_order},
      {"a minute ahead", sample(minutes{1}, 1), Refusal::from_the_future},
      {"negative utilization", sample(seconds{1}, -1), Refusal::utilization_range},
      {"more than all CPUs", sample(seconds{1}, 1001), Refusal::utilization_range},
      {"negative watts", sample(seconds{1}, 1, -5), Refusal::power_range},
      {"UINT32_MAX watts", sample(seconds{1}, 1, 4294967295000), Refusal::power_range},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    SampleStore store;
    REQUIRE_FALSE(store.add("n1", sample(seconds{0}, 1), kStart));
    const auto refusal = store.add("n1", c.given, kStart);
    REQUIRE(refusal.has_value());
    CHECK(*refusal == c.want);
    CHECK(store.samples("n1").size() == 1);
  }
}

TEST_CASE("sample store: a jump beyond what the machine can draw is refused") {
  struct Case {
    const char* name;
    std::int64_t milliwatts;
    std::optional<Milliwatts> maximum;
    std::optional<Refusal> want;
  };
  const Case cases[] = {
      {"below", 250'000, watts(300), std::nullopt},
      {"a little above: models are not exact", 450'000, watts(300), std::nullopt},
      {"far above", 450'001, watts(300), Refusal::above_machine},
      {"UINT32_MAX milliwatts", 4'294'967'295, watts(300), Refusal::power_range},
      {"nobody knows its maximum", 9'000'000, std::nullopt, std::nullopt},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    SampleStore store;
    CHECK(store.add("n1", sample(seconds{0}, 1, c.milliwatts), kStart, c.maximum) == c.want);
  }
}

TEST_CASE("sample store: only the newest quarter of an hour is kept") {
  SampleStore store;
  for (int i = 0; i < 3600; i += 5) {
    REQUIRE_FALSE(store.add("n1", sample(seconds{i}, 1), kStart + seconds{i}));
  }
  const auto samples = store.samples("n1");
  CHECK(samples.size() <= 182);
  CHECK(samples.front().at >= kStart + seconds{3595} - minutes{15});
}

namespace {
Sample power_of(Source source, Duration after, std::int64_t of_watts, bool whole_machine,
                Duration period = seconds{10}) {
  Sample s{.at = kStart + after, .utilization = {}, .busy = {}, .power = watts(of_watts)};
  s.source = source;
  s.period = period;
  s.has_utilization = false;
  s.whole_machine = whole_machine;
  return s;
}
}  // namespace

TEST_SUITE("telemetry") {
  TEST_CASE(
      "sample store: what covers the whole machine is believed before packages, then by source") {
    SampleStore store;
    const auto newest = [&] { return store.samples("n1").back(); };
    REQUIRE_FALSE(store.add("n1", power_of(Source::kepler, seconds{0}, 60, false), kStart));
    CHECK(newest().power_source == Source::kepler);
    CHECK_FALSE(newest().whole_machine);
    REQUIRE_FALSE(
        store.add("n1", power_of(Source::kepler_platform, seconds{0}, 200, true), kStart));
    CHECK(*newest().power == watts(200));
    REQUIRE_FALSE(store.add("n1", power_of(Source::bmc, seconds{0}, 210, true), kStart));
    CHECK(newest().power_source == Source::bmc);
    // The agent's RAPL goes behind them, its meter before them.
    Sample rapl = sample(seconds{0}, 300, 70'000);
    rapl.whole_machine = false;
    REQUIRE_FALSE(store.add("n1", rapl, kStart));
    CHECK(newest().power_source == Source::bmc);
    CHECK(newest().utilization_source == Source::agent);
    CHECK(newest().utilization == Permille{300});
    CHECK(newest().from_agent);
    REQUIRE_FALSE(store.add("n1", sample(seconds{6}, 300, 190'000), kStart + seconds{6}));
    CHECK(newest().power_source == Source::agent);
  }

  TEST_CASE(
      "sample store: each source is believed for three of its own periods, then the next one") {
    SampleStore store;
    for (int i = 0; i <= 60; i += 5) {
      REQUIRE_FALSE(store.add("n1", sample(seconds{i}, 500), kStart + seconds{i}));
    }
    // A slow meter, and a fast one of the packages that goes on when the slow one has ended.
    REQUIRE_FALSE(
        store.add("n1", power_of(Source::bmc, seconds{0}, 200, true, seconds{20}), kStart));
    for (int i = 0; i <= 200; i += 10) {
      REQUIRE_FALSE(
          store.add("n1", power_of(Source::kepler, seconds{i}, 60, false), kStart + seconds{i}));
    }
    for (const Reading& reading : store.samples("n1")) {
      CAPTURE((reading.at - kStart).count());
      const bool slow = reading.at <= kStart + seconds{60};
      CHECK(reading.power_source == (slow ? Source::bmc : Source::kepler));
      CHECK(*reading.power == watts(slow ? 200 : 60));
      // The agent fell silent at 60 s and measured every 5 s: 30 s, the least.
      CHECK(reading.has_utilization == (reading.at <= kStart + seconds{90}));
      if (reading.has_utilization) {
        CHECK(reading.utilization_until <= kStart + seconds{90});
      }
      CHECK(reading.from_agent == (reading.at <= kStart + seconds{60}));
    }
  }

  TEST_CASE("sample store: a source that measures less often than it is asked is believed longer") {
    SampleStore store;
    for (const int at : {0, 60, 120}) {
      REQUIRE_FALSE(store.add("n1", power_of(Source::ipmi_exporter, seconds{at}, 100, true),
                              kStart + seconds{at}));
    }
    CHECK(store.samples("n1").back().power_until == kStart + seconds{120 + 180});
    // One long gap is an outage and no period.
    REQUIRE_FALSE(store.add("n1", power_of(Source::ipmi_exporter, seconds{720}, 100, true),
                            kStart + seconds{720}));
    CHECK(store.samples("n1").back().power_until == kStart + seconds{720 + 180});
  }

  TEST_CASE("sample store: a BMC that is asked ever more rarely is not believed for longer") {
    SampleStore store;
    for (const int at : {0, 600, 1200}) {
      REQUIRE_FALSE(store.add("n1", power_of(Source::bmc, seconds{at}, 100, true, seconds{30}),
                              kStart + seconds{at}));
    }
    const Reading newest = store.samples("n1").back();
    CHECK(newest.power_at == kStart + seconds{1200});
    CHECK(newest.power_until == kStart + seconds{1200 + 90});
    // It was measured when it was measured, whoever speaks later.
    REQUIRE_FALSE(store.add("n1", sample(seconds{1230}, 100), kStart + seconds{1230}));
    CHECK(store.samples("n1").back().at == kStart + seconds{1230});
    CHECK(store.samples("n1").back().power_at == kStart + seconds{1200});
  }

  TEST_CASE("sample store: a meter that an agent has lost is not remembered") {
    SampleStore store;
    REQUIRE_FALSE(store.add("n1", sample(seconds{0}, 100, 90'000), kStart));
    REQUIRE_FALSE(store.add("n1", sample(seconds{5}, 100), kStart + seconds{5}));
    CHECK(store.samples("n1").front().power.has_value());
    CHECK_FALSE(store.samples("n1").back().power.has_value());
    CHECK(*store.newest("n1", Source::agent) == kStart + seconds{5});
    CHECK_FALSE(store.newest("n1", Source::bmc).has_value());
  }

  TEST_CASE("sample store: readings of a source that ended long ago are dropped with the others") {
    SampleStore store;
    REQUIRE_FALSE(store.add("n1", power_of(Source::bmc, seconds{0}, 100, true), kStart));
    REQUIRE_FALSE(store.add("n1", sample(minutes{20}, 100), kStart + minutes{20}));
    REQUIRE(store.samples("n1").size() == 1);
    CHECK_FALSE(store.samples("n1").front().power.has_value());
  }
}
