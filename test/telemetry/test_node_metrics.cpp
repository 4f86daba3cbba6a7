#include <doctest/doctest.h>

#include "telemetry/node_metrics.hpp"

namespace kwatt::telemetry {
namespace {

using std::chrono::seconds;
const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:10Z");

std::string item(const std::string& name, const std::string& cpu,
                 const std::string& time = "2026-11-20T10:00:00Z") {
  return R"({"metadata":{"name":")" + name +
         R"(","creationTimestamp":"2026-11-20T10:00:10Z","labels":{"a":"b"}},"timestamp":")" +
         time + R"(","window":"10.062s","usage":{"cpu":")" + cpu + R"(","memory":"1024Ki"}})";
}
std::string list(const std::string& items) {
  return R"({"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[)" +
         items + "]}";
}
Result<Fetched> read(const std::string& json) {
  NodeDirectory nodes;
  nodes.add("n1", "10.0.0.1", Millicores{4000});
  nodes.add("n2", "10.0.0.2", Millicores{2000});
  return read_node_metrics(json, nodes, kNow, seconds{15});
}

TEST_SUITE("telemetry") {
  TEST_CASE("usage of nodes becomes utilization of what is allocatable, without power") {
    const auto fetched = read(list(item("n2", "500m") + "," + item("n1", "1500000000n")));
    REQUIRE(fetched.has_value());
    REQUIRE(fetched->readings.size() == 2);
    CHECK(fetched->readings[0].node == "n1");
    const Sample& sample = fetched->readings[0].sample;
    CHECK(sample.busy == Permille{375});
    CHECK(sample.utilization == Permille{375});
    CHECK(sample.at == kNow - seconds{10});
    CHECK(sample.source == Source::metrics_api);
    CHECK_FALSE(sample.power.has_value());
    CHECK(fetched->readings[1].sample.busy == Permille{250});
    CHECK(fetched->rejected.empty());
  }

  TEST_CASE("work outside of pods fills a node up and no further") {
    const auto fetched = read(list(item("n1", "4100m")));
    REQUIRE(fetched.has_value());
    CHECK(fetched->readings.at(0).sample.busy == Permille{1000});
  }

  TEST_CASE("what cannot be believed is rejected with its reason") {
    struct Case {
      std::string items;
      Rejection want;
    };
    const Case cases[] = {
        {item("n9", "1"), Rejection::unknown_node},
        {item("n1", "much"), Rejection::not_a_number},
        {item("n1", ""), Rejection::not_a_number},
        {item("n1", "-1"), Rejection::out_of_range},
        {item("n1", "41"), Rejection::out_of_range},
        {item("n1", "1", "2026-11-20T09:54:00Z"), Rejection::stale},
        {item("n1", "1", "2026-11-20T10:02:00Z"), Rejection::stale},
        {R"({"metadata":{"name":"n1"},"usage":{"cpu":"1"}})", Rejection::stale},
        {item("n2", "1") + "," + item("n2", "1"), Rejection::several_series},
    };
    for (const Case& c : cases) {
      CAPTURE(c.items);
      const auto fetched = read(list(c.items));
      REQUIRE(fetched.has_value());
      REQUIRE(fetched->rejected.size() == 1);
      CHECK(fetched->rejected.begin()->first == c.want);
    }
  }

  TEST_CASE("what is no list of node metrics is refused") {
    for (const std::string& json : {std::string(), std::string("<html>"), std::string("{}"),
                                    list(R"({"metadata":1})"), list(item("n1", "1")) + "x"}) {
      CAPTURE(json);
      const auto fetched = read(json);
      REQUIRE_FALSE(fetched.has_value());
      CHECK((fetched.error().code == ErrorCode::parse ||
             fetched.error().code == ErrorCode::not_found));
    }
    CHECK(read(list("")).error().code == ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace kwatt::telemetry
