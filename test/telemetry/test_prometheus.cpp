#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "telemetry/prometheus.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

namespace kwatt::telemetry {
namespace {

using std::chrono::seconds;
using test::run_task;
using test::ScriptedPeer;

const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");
constexpr double kEvaluated = 1'000'000;  // the server's clock is another one
const std::vector<std::string> kLabels{"node", "instance"};

NodeDirectory directory() {
  NodeDirectory nodes;
  nodes.add("n1", "10.0.0.1", Millicores{4000});
  nodes.add("n2", "fd00::2", Millicores{4000});
  return nodes;
}

Series one(const std::string& part, const std::string& label, const std::string& name,
           double value) {
  Series series;
  series.labels = {{label, name}, {std::string(kPartLabel), part}};
  series.time = kEvaluated;
  series.value = value;
  return series;
}
// The two parts of one node's reading.
std::vector<Series> reading(const std::string& label, const std::string& name, double watts,
                            double age = 5) {
  return {one("watts", label, name, watts), one("measured", label, name, kEvaluated - age)};
}
Fetched read(const std::vector<Series>& series) {
  return read_power(series, *query_of(Source::ipmi_exporter, kLabels), kLabels, directory(), kNow,
                    seconds{15});
}

TEST_SUITE("telemetry") {
  TEST_CASE("a series is its node's by name, address, or either with a port") {
    struct Case {
      const char *label, *value, *node;
    };
    const Case cases[] = {{"node", "n1", "n1"},
                          {"instance", "n1", "n1"},
                          {"instance", "n1:9100", "n1"},
                          {"instance", "10.0.0.1", "n1"},
                          {"instance", "10.0.0.1:9100", "n1"},
                          {"instance", "fd00::2", "n2"},
                          {"instance", "[fd00::2]:9100", "n2"}};
    for (const Case& c : cases) {
      CAPTURE(c.value);
      const Fetched fetched = read(reading(c.label, c.value, 151.25));
      REQUIRE(fetched.readings.size() == 1);
      CHECK(fetched.readings[0].node == c.node);
      const Sample& sample = fetched.readings[0].sample;
      CHECK(*sample.power == Milliwatts{151'250});
      CHECK(sample.at == kNow - seconds{5});
      CHECK(sample.period == seconds{15});
      CHECK(sample.source == Source::ipmi_exporter);
      CHECK(sample.whole_machine);
      CHECK_FALSE(sample.has_utilization);
      CHECK(fetched.faulty() == 0);
    }
  }

  TEST_CASE("what cannot be believed is rejected with its reason, and the others are taken") {
    const double nan = std::nan("");
    const double infinity = std::numeric_limits<double>::infinity();
    struct Case {
      const char* name;
      std::vector<Series> given;
      Rejection want;
    };
    std::vector<Series> twice = reading("node", "n1", 100);
    twice.push_back(one("watts", "instance", "10.0.0.1:9290", 30));
    std::vector<Series> unlabelled = reading("job", "ipmi", 100);
    std::vector<Series> no_time = {one("watts", "node", "n1", 100)};
    const Case cases[] = {
        {"NaN", reading("node", "n1", nan), Rejection::not_a_number},
        {"an infinity", reading("node", "n1", infinity), Rejection::not_a_number},
        {"negative", reading("node", "n1", -1), Rejection::out_of_range},
        {"UINT32_MAX", reading("node", "n1", 4294967295.0), Rejection::out_of_range},
        {"six minutes old", reading("node", "n1", 100, 360), Rejection::stale},
        {"from the future", reading("node", "n1", 100, -60), Rejection::stale},
        {"of a time that is NaN", reading("node", "n1", 100, nan), Rejection::stale},
        {"without a time", no_time, Rejection::stale},
        {"two values for a node", twice, Rejection::several_series},
        {"no label names the node", unlabelled, Rejection::no_label},
        {"another cluster's node", reading("node", "n9", 100), Rejection::unknown_node},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      std::vector<Series> series = c.given;
      for (const Series& good : reading("node", "n2", 80)) series.push_back(good);
      const Fetched fetched = read(series);
      REQUIRE(fetched.readings.size() == 1);
      CHECK(fetched.readings[0].node == "n2");
      REQUIRE(fetched.rejected.size() == 1);
      CHECK(fetched.rejected.begin()->first == c.want);
      CHECK(fetched.rejected.begin()->second == 1);
      CHECK_FALSE(fetched.example.empty());
      CHECK(fetched.faulty() == (c.want == Rejection::unknown_node ? 0 : 1));
    }
  }

  TEST_CASE("an address that two nodes have names neither") {
    NodeDirectory nodes;
    nodes.add("n1", "127.0.0.1", Millicores{1000});
    nodes.add("n2", "127.0.0.1", Millicores{1000});
    CHECK(nodes.find("127.0.0.1") == nullptr);
    CHECK(nodes.find("n2:80")->name == "n2");
  }

  TEST_CASE("every known exporter has a query, by its own word, that never adds Kepler's zones") {
    for (const Source exporter : known_exporters()) {
      CAPTURE(to_string(exporter));
      const auto query = query_of(exporter, kLabels);
      REQUIRE(query.has_value());
      CHECK(query->source == exporter);
      const std::string text = instant_query(*query);
      CHECK(text.find("timestamp(") != std::string::npos);
      if (text.find("kepler") != std::string::npos) CHECK(text.find("sum") == std::string::npos);
    }
    CHECK_FALSE(query_of(Source::agent, kLabels).has_value());
    CHECK(query_of(Source::node_exporter_rapl, {"a", "b"})->watts.starts_with("sum by (a, b) "));
  }

  TEST_CASE("the query goes out once, with the token, and the answer comes back as readings") {
    boost::asio::io_context io;
    ScriptedPeer peer(io.get_executor());
    peer.reply(test::json_response(
        200, R"({"status":"success","data":{"resultType":"vector","result":[)"
             R"({"metric":{"node":"n1","kwatt_part":"watts"},"value":[1000,"99.5"]},)"
             R"({"metric":{"node":"n1","kwatt_part":"measured"},"value":[1000,"998"]}]}})"));
    PrometheusServer server;
    server.url.origin = peer.origin();
    server.url.path = "/prom/";
    server.labels = kLabels;
    server.token = []() -> Result<std::string> { return std::string("secret"); };
    const auto source =
        make_prometheus_source(io.get_executor(), server, own_query("my_watts"), seconds{15});
    const auto nodes = std::make_shared<const NodeDirectory>(directory());
    const auto fetched = run_task(io, source->fetch(nodes, kNow));
    REQUIRE(fetched.has_value());
    REQUIRE(fetched->readings.size() == 1);
    CHECK(*fetched->readings[0].sample.power == Milliwatts{99'500});
    CHECK(fetched->readings[0].sample.at == kNow - seconds{2});
    REQUIRE(peer.requests().size() == 1);
    CHECK(
        peer.requests()[0].starts_with("GET /prom/api/v1/query?query=label_replace%28%28my_watts"));
    CHECK(peer.requests()[0].find("Authorization: Bearer secret\r\n") != std::string::npos);
  }

  TEST_CASE("a server that does not answer the query gives a typed error with a sentence") {
    struct Case {
      const char* name;
      test::Script reply;
      ErrorCode code;
      const char* sentence;
    };
    const std::string empty = R"({"status":"success","data":{"resultType":"vector","result":[]}})";
    const Case cases[] = {
        {"no series", test::json_response(200, empty), ErrorCode::not_found, "is the exporter"},
        {"HTML", test::response(200, "<html>sign in</html>"), ErrorCode::parse, "not JSON"},
        {"a redirect", test::response(302, "", {{"Location", "https://login/"}}),
         ErrorCode::forbidden, "redirects are not followed"},
        {"401", test::response(401, "no"), ErrorCode::unauthorized, "token"},
        {"403", test::response(403, "no"), ErrorCode::forbidden, "may not"},
        {"404", test::response(404, "404 page not found"), ErrorCode::not_found, "no Prometheus"},
        {"429", test::response(429, ""), ErrorCode::too_many_requests, "too many"},
        {"500 as text", test::response(500, "oops"), ErrorCode::unavailable, "in trouble"},
        {"a bad query",
         test::json_response(400, R"({"status":"error","errorType":"bad_data","error":"1:3"})"),
         ErrorCode::invalid_argument, "refuses the query"},
        {"503 with a reason",
         test::json_response(503, R"({"status":"error","errorType":"timeout","error":"slow"})"),
         ErrorCode::timeout, "refuses the query"},
        {"half an answer", test::response(200, R"({"status":"succ)"), ErrorCode::parse, "not JSON"},
        {"cut off", test::Script("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{").close(),
         ErrorCode::unavailable, ""},
        {"a huge answer", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{",
         ErrorCode::protocol, ""},
        {"silence", test::Script{}.stall(), ErrorCode::timeout, ""},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      boost::asio::io_context io;
      ScriptedPeer peer(io.get_executor());
      peer.reply(c.reply);
      PrometheusServer server;
      server.url.origin = peer.origin();
      server.url.path = "/";
      server.labels = kLabels;
      server.timeout = Duration{200};
      const auto source = make_prometheus_source(io.get_executor(), server,
                                                 *query_of(Source::kepler, kLabels), seconds{15});
      const auto nodes = std::make_shared<const NodeDirectory>(directory());
      const auto fetched = run_task(io, source->fetch(nodes, kNow));
      REQUIRE_FALSE(fetched.has_value());
      CHECK_MESSAGE(fetched.error().code == c.code, fetched.error().text());
      CHECK_MESSAGE(fetched.error().message.find(c.sentence) != std::string::npos,
                    fetched.error().message);
      CHECK(peer.requests().size() == 1);
    }
  }
}

}  // namespace
}  // namespace kwatt::telemetry
