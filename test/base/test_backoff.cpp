#include <doctest/doctest.h>

#include "base/backoff.hpp"
#include "base/metrics.hpp"

using namespace kwatt;
using std::chrono::seconds;

TEST_CASE("backoff: doubles to the maximum, jitter only adds, quiet time starts anew") {
  double random = 0;
  Backoff backoff({}, [&] { return random; });
  MonotonicPoint now{};
  for (const int want : {800, 1600, 3200, 6400, 12'800, 25'600, 30'000, 30'000}) {
    CHECK(backoff.next(now).count() == want);
  }
  random = 0.999;
  CHECK(backoff.next(now).count() == 59'970);
  random = 0;
  now += seconds{120};
  CHECK(backoff.next(now).count() == 800);
  CHECK(backoff.failures() == 1);
}

TEST_CASE("backoff: a thousand failures do not overflow") {
  Backoff backoff({}, [] { return 0.0; });
  for (int i = 0; i < 1000; ++i) backoff.next(MonotonicPoint{});
  CHECK(backoff.next(MonotonicPoint{}).count() == 30'000);
  CHECK(exponential(Duration{60'000}, std::chrono::hours{8}, 1000) == std::chrono::hours{8});
  CHECK(exponential(Duration{60'000}, std::chrono::hours{8}, 1) == Duration{60'000});
  CHECK(exponential(Duration{60'000}, std::chrono::hours{8}, 3) == Duration{240'000});
}

TEST_CASE("metrics: series of one family are told apart by their labels") {
  Metrics metrics;
  metrics.add("kwatt_things_total", "Things.", {{"kind", "a"}});
  metrics.add("kwatt_things_total", "Things.", {{"kind", "a"}}, 2);
  metrics.add("kwatt_things_total", "Things.", {{"kind", "b"}});
  metrics.set("kwatt_level", "Level.", {}, 7);
  metrics.observe("kwatt_seconds", "Seconds.", {}, 0.5, {0.1, 1});
  const std::string text = metrics.render();
  CHECK(text.find("kwatt_things_total{kind=\"a\"} 3") != std::string::npos);
  CHECK(text.find("kwatt_things_total{kind=\"b\"} 1") != std::string::npos);
  CHECK(text.find("kwatt_level 7") != std::string::npos);
  CHECK(text.find("kwatt_seconds_bucket{le=\"1\"} 1") != std::string::npos);
  metrics.remove_gauge("kwatt_level", {});
  CHECK(metrics.render().find("kwatt_level 7") == std::string::npos);
}
