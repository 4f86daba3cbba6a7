#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "telemetry/carbon_source.hpp"
#include "telemetry/carbon_zones.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Reading;
using std::chrono::hours;
using test::json_response;

TimePoint at(std::string_view text) {
  return *parse_rfc3339(text);
}
const TimePoint kNow = at("2026-11-22T10:20:30Z");

CarbonMapping mapping(std::string list, std::string time, std::string value,
                      std::string unit = "g/kWh") {
  CarbonMapping out;
  out.list = std::move(list);
  out.time = std::move(time);
  out.value = std::move(value);
  out.unit = std::move(unit);
  return out;
}

TEST_CASE("the answers of public services are read by their mappings") {
  struct Case {
    std::string_view service;
    CarbonMapping mapping;
    std::string_view json;
    std::vector<std::pair<std::string_view, double>> want;
  };
  for (const Case& one : {
           Case{"Electricity Maps, history",
                mapping("/history", "/datetime", "/carbonIntensity"),
                R"({"zone":"DE","history":[
                  {"zone":"DE","carbonIntensity":380,"datetime":"2026-11-22T08:00:00.000Z"},
                  {"zone":"DE","carbonIntensity":371.5,"datetime":"2026-11-22T09:00:00.000Z"}]})",
                {{"2026-11-22T08:00:00Z", 380}, {"2026-11-22T09:00:00Z", 371.5}}},
           Case{"Electricity Maps, latest",
                mapping("", "/datetime", "/carbonIntensity"),
                R"({"zone":"DE","carbonIntensity":302,"datetime":"2026-11-22T09:00:00.000Z"})",
                {{"2026-11-22T09:00:00Z", 302}}},
           Case{"UK Carbon Intensity: hours to come have no value yet",
                mapping("/data", "/from", "/intensity/actual"),
                R"({"data":[{"from":"2026-11-22T09:30Z","to":"2026-11-22T10:00Z",
                  "intensity":{"forecast":266,"actual":263,"index":"moderate"}},
                  {"from":"2026-11-22T10:30Z","to":"2026-11-22T11:00Z",
                  "intensity":{"forecast":250,"actual":null,"index":"moderate"}}]})",
                {{"2026-11-22T09:30:00Z", 263}}},
           Case{"WattTime: pounds per MWh, newest first",
                mapping("/data", "/point_time", "/value", "lbs/MWh"),
                R"({"data":[{"point_time":"2026-11-22T10:05:00+00:00","value":1000},
                  {"point_time":"2026-11-22T10:00:00+00:00","value":870}],"meta":{}})",
                {{"2026-11-22T10:00:00Z", 394.6253619}, {"2026-11-22T10:05:00Z", 453.59237}}},
           Case{"Unix seconds",
                mapping("/0", "/t", "/v", "kg/kWh"),
                R"([[{"t":1795341600,"v":0.25}]])",
                {{"2026-11-22T10:00:00Z", 250}}},
       }) {
    INFO(std::string(one.service));
    const auto readings = read_carbon_json(one.json, one.mapping);
    REQUIRE_MESSAGE(readings.has_value(), readings.error().message);
    REQUIRE(readings->size() == one.want.size());
    for (std::size_t i = 0; i < one.want.size(); ++i) {
      CHECK(format_rfc3339((*readings)[i].at) == one.want[i].first);
      CHECK((*readings)[i].grams_per_kwh == doctest::Approx(one.want[i].second));
    }
  }
}

TEST_CASE("an answer that does not fit the mapping is refused with the place in it") {
  struct Case {
    CarbonMapping mapping;
    std::string_view json, complaint;
  };
  const CarbonMapping usual = mapping("/history", "/datetime", "/carbonIntensity");
  for (const Case& one : {
           Case{usual, "<html>", "carbon intensity at byte 0: this is no JSON"},
           Case{usual, R"({"data":[]})", "at /history: there is nothing, a list is expected"},
           Case{usual, R"({"history":7})", "at /history: a list is expected, not a number"},
           Case{usual, R"({"history":[{"carbonIntensity":"7"}]})",
                "at /history/0/carbonIntensity: a number is expected, not a text"},
           Case{usual, R"({"history":[{"carbonIntensity":7}]})",
                "at /history/0/datetime: there is nothing, a time is expected"},
           Case{usual, R"({"history":[{"carbonIntensity":7,"datetime":"now"}]})",
                "at /history/0/datetime: this is no time such as"},
           Case{usual, R"({"history":[{"carbonIntensity":-7,"datetime":1795341600}]})",
                "at /history/0/carbonIntensity: -7 g/kWh: it is negative"},
           Case{mapping("/history", "/datetime", "/carbonIntensity", "kg/kWh"),
                R"({"history":[{"carbonIntensity":300,"datetime":1795341600}]})",
                "300000 g/kWh: no electricity is dirtier"},
           Case{mapping("history", "", ""), "{}",
                "list: \"history\" is no JSON pointer such as /data/0/intensity"},
           Case{mapping("", "", "", "g/MJ"), "{}",
                "unit: \"g/MJ\" is not known; there are: g/kWh, kg/MWh, kg/kWh, lbs/MWh"},
       }) {
    const auto readings = read_carbon_json(one.json, one.mapping);
    REQUIRE_FALSE(readings.has_value());
    INFO(readings.error().message);
    CHECK(readings.error().message.find(one.complaint) != std::string::npos);
  }
}

struct Fixture {
  boost::asio::io_context io;
  test::ScriptedPeer fake_service{io.get_executor()};

  CarbonService service(const std::string& path) {
    CarbonService out;
    out.url = "http://127.0.0.1:" + std::to_string(fake_service.port()) + path;
    out.mapping = mapping("/history", "/datetime", "/carbonIntensity");
    out.allowed = *net::AllowList::parse({"127.0.0.1"}, net::AllowList::Bare::both);
    out.timeout = Duration{400};
    return out;
  }
  Result<std::vector<Reading>> ask(CarbonSource& source, const std::string& zone) {
    return test::run_task(io, source.fetch(zone, kNow));
  }
  std::string told(CarbonSource& source) {
    const auto answer = ask(source, "DE");
    return answer ? "answered"
                  : std::string(to_string(answer.error().code)) + ": " + answer.error().text();
  }
};

TEST_CASE_FIXTURE(Fixture, "a service is asked for a zone and a time, with its key in the header") {
  CarbonService asked = service("/v3/history?zone={zone}&start={from}&end={to}");
  asked.header = "auth-token";
  asked.prefix = "Bearer ";
  asked.secret = [] { return Result<std::string>("s3cret"); };
  auto source = make_carbon_service(io.get_executor(), "maps", std::move(asked));
  REQUIRE_MESSAGE(source.has_value(), source.error().message);
  fake_service.reply(json_response(
      200, R"({"history":[{"carbonIntensity":300,"datetime":"2026-11-22T09:00:00Z"}]})"));
  const auto readings = ask(**source, "US CAL/CISO");
  REQUIRE_MESSAGE(readings.has_value(), readings.error().message);
  CHECK(readings->front().grams_per_kwh == 300);
  CHECK(fake_service.request_lines().front() ==
        "GET /v3/history?zone=US%20CAL%2FCISO&start=2026-11-20T10%3A20Z&end=2026-11-22T10%3A20Z "
        "HTTP/1.1");
  CHECK(fake_service.requests().front().find("auth-token: Bearer s3cret\r\n") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "what a service answers instead is told, and never its key") {
  auto source = make_carbon_service(io.get_executor(), "maps", service("/h"));
  REQUIRE(source.has_value());
  struct Case {
    test::Script answer;
    std::string_view want;
  };
  std::vector<Case> cases;
  cases.push_back(
      {json_response(401, "{}"), "unauthorized: maps: HTTP 401: it wants a (valid) key"});
  cases.push_back({json_response(404, "{}"), "not_found: maps: HTTP 404: no such zone or address"});
  cases.push_back({json_response(429, "{}"), "too_many_requests: maps: HTTP 429"});
  cases.push_back({json_response(503, "{}"), "unavailable: maps: HTTP 503"});
  cases.push_back({test::response(302, "", {}), "forbidden: maps: HTTP 302: redirects are not"});
  cases.push_back({json_response(200, "{}"), "parse: maps: carbon intensity at /history"});
  cases.push_back({json_response(200, R"({"history":[]})"),
                   "not_found: maps: no value for zone \"DE\" in the answer"});
  cases.push_back({test::Script{}.stall(), "timeout: maps: "});
  for (Case& one : cases) {
    fake_service.reply(std::move(one.answer));
    const std::string text = told(**source);
    INFO(text);
    CHECK(text.starts_with(one.want));
  }
}

TEST_CASE_FIXTURE(Fixture, "a service that may not be asked is refused before anything is sent") {
  const auto refused = [&](CarbonService asked) {
    auto source = make_carbon_service(io.get_executor(), "maps", std::move(asked));
    REQUIRE_FALSE(source.has_value());
    return source.error().message;
  };
  CarbonService one = service("/h");
  one.allowed = {};
  CHECK(refused(one) ==
        "maps: 127.0.0.1 is not allowed: start kwatt-controller with --endpoint-allow 127.0.0.1");
  one = service("/h");
  one.mapping.list = "history";
  CHECK(refused(one).starts_with("maps: list: \"history\" is no JSON pointer"));
  one = service("/h");
  one.url = "http://{zone}.example.com/h";
  CHECK(refused(one) == "maps: the host of the URL may not depend on the zone or the time");
  one.url = "http://api.example.com/h";
  one.header = "auth-token";
  one.secret = [] { return Result<std::string>("s3cret"); };
  CHECK(refused(one) == "maps: a key is sent over https only; the URL says http");
  one.url = "api.example.com";
  CHECK(refused(one).starts_with("maps: "));
  CHECK(fake_service.connections() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a service whose key cannot be read is not asked") {
  CarbonService asked = service("/h");
  asked.header = "auth-token";
  asked.secret = [] { return Result<std::string>(fail(ErrorCode::io, "cannot read /key")); };
  auto source = make_carbon_service(io.get_executor(), "maps", std::move(asked));
  REQUIRE(source.has_value());
  CHECK(told(**source) == "io: maps: cannot read /key");
  CHECK(fake_service.connections() == 0);
}

TEST_CASE_FIXTURE(Fixture, "Prometheus: one series, or the one that names the zone") {
  PrometheusServer server;
  server.url = *net::parse_url("http://127.0.0.1:" + std::to_string(fake_service.port()));
  const auto answer = [](const std::string& series) {
    return json_response(
        200, R"({"status":"success","data":{"resultType":"vector","result":[)" + series + "]}}");
  };
  const std::string german = R"({"metric":{"zone":"DE"},"value":[1795342830,"312.5"]})";
  const std::string french = R"({"metric":{"region":"FR"},"value":[1795342830,"51"]})";
  const std::string nameless = R"({"metric":{},"value":[1795342830,"99"]})";
  const std::string broken = R"({"metric":{"zone":"DE"},"value":[1795342830,"NaN"]})";
  struct Case {
    std::string query, series;
    std::string_view want;
  };
  for (const Case& one : {
           Case{"ci", german + "," + french, "312.5"},
           Case{"ci", nameless, "99"},
           Case{"ci{zone=\"{zone}\"}", german, "312.5"},
           Case{"ci", french, "not_found: prom: no series for zone \"DE\" in 1 that came"},
           Case{"ci", "", "not_found: prom: no series for zone \"DE\" in 0 that came"},
           Case{"ci", german + "," + german, "parse: prom: more than one series for zone \"DE\""},
           Case{"ci", broken, "parse: prom: carbon intensity of zone \"DE\": it is not a number"},
       }) {
    auto source = make_carbon_prometheus(io.get_executor(), "prom", server, one.query, "g/kWh");
    fake_service.reply(answer(one.series));
    const auto readings = ask(*source, "DE");
    const std::string text =
        readings ? std::to_string(readings->front().grams_per_kwh).substr(0, one.want.size())
                 : std::string(to_string(readings.error().code)) + ": " + readings.error().text();
    CHECK(text == one.want);
  }
  CHECK(fake_service.request_lines()[2].find("query=ci%7Bzone%3D%22DE%22%7D") != std::string::npos);
  auto source =
      make_carbon_prometheus(io.get_executor(), "prom", server, "ci{z=\"{zone}\"}", "g/kWh");
  CHECK(ask(*source, "DE\"} or vector(1) #").error().code == ErrorCode::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a CSV file is read anew each time, and its zones are told apart") {
  std::string text = "time,zone,gramsPerKWh\n2026-11-22T09:00:00Z,DE,300\n";
  CarbonFile file;
  file.path = "ci.csv";
  file.read = [&](const std::string&) { return Result<std::string>(text); };
  auto source = make_carbon_file("file", file);
  CHECK(ask(*source, "DE")->size() == 1);
  CHECK(ask(*source, "FR").error().message == "file: ci.csv has no zone \"FR\"");
  text += "2026-11-22T10:00:00Z,DE,310\n";
  CHECK(ask(*source, "DE")->size() == 2);
  text += "2026-11-22T08:00:00Z,DE,310\n";
  CHECK(ask(*source, "DE").error().message.starts_with("file: ci.csv:4: "));
  text = "time,gramsPerKWh\n2026-11-22T09:00:00Z,7\n";
  CHECK(ask(*source, "anywhere")->front().grams_per_kwh == 7);
}

TEST_CASE("zones keep what was read, each time once, and their last error") {
  CarbonZones zones;
  CHECK_FALSE(zones.newest("DE").has_value());
  zones.failed("DE", fail(ErrorCode::timeout, "maps: no answer"));
  CHECK_FALSE(zones.newest("DE").has_value());
  CHECK(zones.failure("DE") == "maps: no answer");
  zones.took("DE", {{at("2026-11-22T08:00:00Z"), 280},
                    {at("2026-11-22T09:10:00Z"), 290},
                    {at("2026-11-22T09:50:00Z"), 300}});
  CHECK(zones.failure("DE").empty());
  CHECK(*zones.newest("DE") == Reading{at("2026-11-22T09:50:00Z"), 300});
  CHECK(zones.series("DE").size() == 2);
  CHECK(*zones.series("DE").value(1) == 295);
  zones.took("DE", {{at("2026-11-22T09:50:00Z"), 300}});  // the same again counts once
  CHECK(*zones.series("DE").value(1) == 295);
  CHECK(zones.series("FR").empty());
  // A year and a bit is kept.
  zones.took("DE", {{at("2028-11-22T08:00:00Z"), 1}});
  CHECK(zones.series("DE").size() == 1);
}

}  // namespace
}  // namespace kwatt::telemetry
