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
