// Values that a source has published ahead.
#include <doctest/doctest.h>

#include "models/carbon/published.hpp"

using namespace kwatt;
using namespace kwatt::models::carbon;
using namespace std::chrono_literals;

namespace {

const TimePoint kNow{std::chrono::hours{480'000}};

}  // namespace

TEST_CASE("published carbon: values ahead are taken in their own steps, gaps as the value before") {
  const std::vector<Reading> readings = {
      {kNow - 2h, 100}, {kNow - 10min, 200}, {kNow + 5min, 300}, {kNow + 35min, 50}};
  const auto steps = published_ahead(readings, kNow);
  REQUIRE(steps);
  CHECK(steps->start == kNow - 10min);
  CHECK(steps->step == 15min);
  CHECK(steps->grams_per_kwh == std::vector<double>{200, 300, 300, 50});
}

TEST_CASE("published carbon: what ends now, or begins later, is no forecast") {
  CHECK_FALSE(published_ahead({}, kNow));
  CHECK_FALSE(published_ahead({{kNow - 2h, 100}, {kNow - 1h, 200}}, kNow));
  CHECK_FALSE(published_ahead({{kNow - 2h, 100}, {kNow, 200}}, kNow));
  CHECK_FALSE(published_ahead({{kNow + 1h, 100}, {kNow + 2h, 200}}, kNow));
}

TEST_CASE("published carbon: fine steps far ahead stay bounded") {
  const std::vector<Reading> readings = {{kNow, 1}, {kNow + 1s, 2}, {kNow + 48h, 3}};
  const auto steps = published_ahead(readings, kNow + 500ms);
  REQUIRE(steps);
  CHECK(steps->grams_per_kwh.size() == kMostPublishedSteps);
}
