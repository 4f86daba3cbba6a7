#include <doctest/doctest.h>

#include "telemetry/meter_store.hpp"

namespace kwatt::telemetry {
namespace {

TEST_SUITE_BEGIN("redfish");

using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

MeterReading reading(Duration after, std::int64_t watts) {
  return {kStart + after, kwatt::watts(watts), "redfish"};
}

TEST_CASE("meter store: a reading stands until the next one, and not for long") {
  MeterStore store;
  CHECK(store.add("n1", reading(seconds{0}, 100)));
  CHECK(store.add("n1", reading(seconds{30}, 120)));
  struct Case {
    Duration when;
    std::optional<std::int64_t> watts;
  };
  const Case cases[] = {{seconds{-1}, std::nullopt}, {seconds{0}, 100},
                        {seconds{29}, 100},          {seconds{30}, 120},
                        {seconds{120}, 120},         {seconds{121}, std::nullopt}};
  for (const Case& c : cases) {
    CAPTURE(c.when.count());
    const auto at = store.at("n1", kStart + c.when);
    CHECK(at.has_value() == c.watts.has_value());
    if (at && c.watts) CHECK(at->power == watts(*c.watts));
  }
  CHECK_FALSE(store.at("n2", kStart).has_value());
  store.forget("n1");
  CHECK_FALSE(store.at("n1", kStart).has_value());
}

TEST_CASE("meter store: what cannot be true, or is not new, is refused") {
  MeterStore store;
  CHECK(store.add("n1", reading(seconds{10}, 100)));
  CHECK_FALSE(store.add("n1", reading(seconds{10}, 101)));
  CHECK_FALSE(store.add("n1", reading(seconds{9}, 101)));
  CHECK_FALSE(store.add("n1", reading(seconds{20}, -1)));
  CHECK_FALSE(store.add("n1", reading(seconds{20}, 100'001)));
  CHECK(store.at("n1", kStart + seconds{20})->power == watts(100));
  // Bounded: what is older than a quarter of an hour goes.
  CHECK(store.add("n1", reading(minutes{20}, 90)));
  CHECK_FALSE(store.at("n1", kStart + seconds{20}).has_value());
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::telemetry
