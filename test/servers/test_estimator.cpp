#include <limits>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include "servers/estimator.hpp"
#include "test/support/run_task.hpp"

namespace kwatt::servers {
namespace {

constexpr const char* kPath = "/namespaces/default/estimators/default/values/powerconsumption";
constexpr const char* kQuestion = R"({"cpu_milli":500,"num_workloads":5})";

// The nodes of WAO's README: 5, 9, 13, 15 and 16 watts for 1 … 5 workloads of 500 millicores.
placement::EstimatorNodes worked_case() {
  placement::EstimatorNode node;
  node.name = "a";
  node.free = Millicores{2'500};
  node.free_pods = 110;
  std::int64_t milli = 0;
  for (const int draw : {100, 105, 109, 113, 115, 116}) {
    node.draw.push_back({Millicores{milli}, watts(draw)});
    milli += 500;
  }
  return {{node}};
}

struct Room {
  boost::asio::io_context io;
  Metrics metrics;
  EstimatorBook book;
  std::optional<ApiKeys> keys;
  net::Handler handler = estimator_handler(
      {.book = book, .metrics = metrics, .keys = [this] { return keys ? &*keys : nullptr; }});
  Room() { book.publish("default/default", worked_case()); }

  net::Response ask(std::string method, std::string path, std::string body = {},
                    std::vector<net::Headers::Entry> headers = {}) {
    net::Request request(std::move(method), std::move(path));
    request.body = std::move(body);
    for (const auto& [name, value] : headers) request.headers.add(name, value);
    return test::run_task(io, handler(std::move(request)));
  }
  net::Response post(std::string body) { return ask("POST", kPath, std::move(body)); }
};

TEST_CASE("the answer is byte for byte what WAO-Estimator sends") {
  Room room;
  const net::Response first = room.post(kQuestion);
  CHECK(first.status == 200);
  CHECK(first.headers.get("Content-Type") == "application/json");
  CHECK(first.body ==
        "{\"cpu_milli\":500,\"num_workloads\":5,\"watt_increases\":[5,9,13,15,16]}\n");
  // From what was kept, and a shorter question from the longer answer.
  CHECK(room.post(kQuestion).body == first.body);
  CHECK(room.post(R"({"num_workloads":2,"cpu_milli":500})").body ==
        "{\"cpu_milli\":500,\"num_workloads\":2,\"watt_increases\":[5,9]}\n");
}

TEST_CASE("more workloads than fit: the largest double") {
  Room room;
  CHECK(
      room.post(R"({"cpu_milli":1500,"num_workloads":2})").body ==
      "{\"cpu_milli\":1500,\"num_workloads\":2,\"watt_increases\":[13,1.7976931348623157e+308]}\n");
}

TEST_CASE("numbers are written as Go writes them") {
  struct Case {
    double value;
    const char* want;
  };
  const Case cases[] = {{5, "5"},
                        {0, "0"},
                        {2.5, "2.5"},
                        {0.1, "0.1"},
                        {-1.25, "-1.25"},
                        {1e-6, "0.000001"},
                        {1e-7, "1e-7"},
                        {2.5e-10, "2.5e-10"},
                        {1e20, "100000000000000000000"},
                        {1e21, "1e+21"},
                        {placement::kInfeasible, "1.7976931348623157e+308"},
                        {std::numeric_limits<double>::quiet_NaN(), "1.7976931348623157e+308"}};
  for (const Case& c : cases) CHECK(go_json_number(c.value) == c.want);
}

TEST_CASE("bad requests are answered with WAO's codes and a sentence") {
  struct Case {
    const char *name, *body, *message;
  };
  const Case cases[] = {
      {"no body", "", R"(a body such as {\"cpu_milli\":500,\"num_workloads\":5} is needed)"},
      {"no JSON", "{", "the body is not JSON: at byte 1: "},
      {"a list", "[1]", "the body must be an object such as "},
      {"not UTF-8", "{\"a\":\"\xff\"}", "the body is not JSON: "},
      {"nothing asked", "{}",
       "cpu_milli: must be an integer from 0 to 1000000000, but it is missing"},
      {"negative CPU", R"({"cpu_milli":-1,"num_workloads":5})",
       "cpu_milli: must be an integer from 0 to 1000000000, not -1"},
      {"a text", R"({"cpu_milli":"500","num_workloads":5})",
       "cpu_milli: must be an integer from 0 to 1000000000, but it is no number"},
      {"a fraction", R"({"cpu_milli":0.5,"num_workloads":5})",
       "cpu_milli: must be an integer from 0 to 1000000000, not a fraction"},
      {"no workloads", R"({"cpu_milli":1,"num_workloads":0})",
       "num_workloads: must be an integer from 1 to 10000, not 0"},
      {"too many", R"({"cpu_milli":1,"num_workloads":10001})",
       "num_workloads: must be an integer from 1 to 10000, not 10001"},
      {"beyond 64 bits", R"({"cpu_milli":1,"num_workloads":1e300})",
       "num_workloads: must be an integer from 1 to 10000, not a number of that size"},
      {"increases that are none", R"({"cpu_milli":1,"num_workloads":1,"watt_increases":"x"})",
       "watt_increases: must be a list of numbers, or be left out"}};
  Room room;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const net::Response response = room.post(c.body);
    CHECK(response.status == 400);
    CHECK(response.headers.get("Content-Type") == "application/json");
    CAPTURE(response.body);
    CHECK(response.body.starts_with(
        std::string(R"({"code":"ErrEstimatorInvalidRequest","message":")") + c.message));
  }
  CHECK(room.post(std::string(70'000, ' ')).status == 400);
  CHECK(room.post(R"({"cpu_milli":500.0,"num_workloads":1,"else":[]})").status == 200);
}

TEST_CASE("what is not there: paths, estimators, methods, machines") {
  Room room;
  struct Case {
    const char *method, *path;
    int status;
    const char* code;
  };
  const Case cases[] = {
      {"POST", "/namespaces/default/estimators/other/values/powerconsumption", 404,
       "ErrServerEstimatorNotFound"},
      {"POST", "/namespaces/a%2Fb/estimators/c/values/powerconsumption", 404,
       "ErrServerEstimatorNotFound"},
      {"POST", "/namespaces/%zz/estimators/c/values/powerconsumption", 404,
       "ErrServerEstimatorNotFound"},
      {"POST", "/namespaces//estimators/c/values/powerconsumption", 404, "ErrUnexpected"},
      {"POST", "/namespaces/a/estimators//values/powerconsumption", 404, "ErrUnexpected"},
      {"POST", "/", 404, "ErrUnexpected"},
      {"GET", kPath, 405, "ErrUnexpected"},
      {"POST", "/openapi.json", 405, "ErrUnexpected"}};
  for (const Case& c : cases) {
    CAPTURE(c.path);
    const net::Response response = room.ask(c.method, c.path, kQuestion);
    CHECK(response.status == c.status);
    CHECK(response.body.starts_with(std::string(R"({"code":")") + c.code + "\""));
    CHECK(response.headers.get("Allow").empty() == (c.status != 405));
  }
  CHECK(room.ask("POST", "/namespaces/x/estimators/y/values/powerconsumption", kQuestion).body ==
        "{\"code\":\"ErrServerEstimatorNotFound\",\"message\":\"estimator x/y not found\"}\n");
  CHECK(room.ask("POST", "/namespaces/d%65fault/estimators/default/values/powerconsumption?x=1",
                 kQuestion)
            .status == 200);
  room.book.publish("default/default", {});
  const net::Response empty = room.post(kQuestion);
  CHECK(empty.status == 500);
  CHECK(empty.body ==
        "{\"code\":\"ErrEstimatorNoNodesAvailable\",\"message\":\"no nodes available "
        "(ErrEstimatorNoNodesAvailable)\"}\n");
  room.book.remove("default/default");
  CHECK(room.post(kQuestion).status == 404);
  CHECK(room.ask("GET", "/healthz").body == ".");
}

TEST_CASE("a key is asked for only where there is one, and any of several will do") {
  Room room;
  CHECK(room.post(kQuestion).status == 200);
  room.keys = ApiKeys{"first", "second key"};
  struct Case {
    std::vector<net::Headers::Entry> headers;
    int status;
  };
  const Case cases[] = {{{}, 401},
                        {{{"X-API-KEY", "wrong"}}, 401},
                        {{{"X-API-KEY", "firs"}}, 401},
                        {{{"X-API-KEY", ""}}, 401},
                        {{{"Authorization", "Bearer first"}}, 401},
                        {{{"X-Api-Key", "first"}}, 200},
                        {{{"x-api-key", "second key"}}, 200},
                        {{{"X-API-KEY", "wrong"}, {"X-API-KEY", "first"}}, 200}};
  for (const Case& c : cases) {
    const net::Response response = room.ask("POST", kPath, kQuestion, c.headers);
    CHECK(response.status == c.status);
    if (c.status == 401) {
      CHECK(response.body ==
            "{\"code\":\"ErrClientUnauthorized\",\"message\":\"the header X-API-KEY is missing, "
            "or its key is wrong\"}\n");
    }
  }
  // Nobody learns without a key which estimators there are, or what is wrong with a request.
  CHECK(room.ask("POST", "/namespaces/x/estimators/y/values/powerconsumption", "{").status == 401);
  CHECK(room.ask("GET", "/openapi.json").status == 200);
}

TEST_CASE("a file of keys") {
  const auto keys = parse_api_keys("# team a\nfirst\n\nsecond key\r\n");
  REQUIRE(keys.has_value());
  CHECK(*keys == ApiKeys{"first", "second key"});
  CHECK_FALSE(parse_api_keys("").has_value());
  CHECK_FALSE(parse_api_keys("# none\n").has_value());
  const auto bad = parse_api_keys("good\n trailing \n");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().message.starts_with("line 2: "));
}

TEST_CASE("answers are forgotten when the machines change, and only then") {
  Room room;
  const EstimateQuestion question{500, 5};
  CHECK(room.book.known_answer("default/default", question) == nullptr);
  room.post(kQuestion);
  CHECK(room.book.known_answer("default/default", question) != nullptr);
  room.book.publish("default/default", worked_case());
  CHECK(room.book.known_answer("default/default", question) != nullptr);
  auto changed = worked_case();
  changed.nodes[0].free = Millicores{400};
  room.book.publish("default/default", std::move(changed));
  CHECK(room.book.known_answer("default/default", question) == nullptr);
  CHECK(room.post(kQuestion).body.find("[1.7976931348623157e+308,") != std::string::npos);
}

TEST_CASE("many at once are refused before they pile up, and the others answered") {
  Room room;
  int answered = 0, refused = 0;
  for (int i = 0; i < 200; ++i) {
    net::Request request("POST", kPath);
    request.body = "{\"cpu_milli\":" + std::to_string(i) + ",\"num_workloads\":10}";
    boost::asio::co_spawn(room.io, room.handler(std::move(request)),
                          [&](const std::exception_ptr&, const net::Response& response) {
                            ++(response.status == 200 ? answered : refused);
                            if (response.status != 200) CHECK(response.status == 503);
                          });
  }
  for (int i = 0; i < 500 && answered + refused < 200; ++i) {
    room.io.restart();
    room.io.run_for(std::chrono::milliseconds(20));
  }
  CHECK(answered + refused == 200);
  CHECK(answered >= 64);
  // It is over: the next one is answered again.
  CHECK(room.post(kQuestion).status == 200);
}

TEST_CASE("the OpenAPI document is JSON, has the path, and asks for a key where one is needed") {
  for (const bool keyed : {false, true}) {
    CAPTURE(keyed);
    rapidjson::Document document;
    const std::string text = estimator_openapi(keyed);
    document.Parse(text.data(), text.size());
    REQUIRE_FALSE(document.HasParseError());
    const char* path = "/namespaces/{ns}/estimators/{name}/values/powerconsumption";
    REQUIRE(document["paths"].HasMember(path));
    CHECK(document["paths"][path]["post"]["security"].Size() == (keyed ? 1 : 0));
  }
}

}  // namespace
}  // namespace kwatt::servers
