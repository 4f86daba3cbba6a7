#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "telemetry/predictor.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

namespace kwatt::telemetry {
namespace {

using test::json_response;
using test::Script;

PredictorSettings allowing(const std::string& text) {
  PredictorSettings settings;
  settings.allowed = *net::AllowList::parse({text}, net::AllowList::Bare::both);
  settings.timeout = Duration{400};
  return settings;
}

PredictionPoint point() {
  PredictionPoint out;
  out.used = Millicores{2000};
  out.logical_processors = 4;
  out.ambient_celsius = 22;
  out.cpu1_celsius = out.cpu2_celsius = 55;
  out.static_pressure_pascal = 0.25;
  out.ambient_range = {12, 32};
  out.cpu1_range = out.cpu2_range = {30, 80};
  return out;
}

struct Fixture {
  boost::asio::io_context io;
  test::ScriptedPeer peer{io.get_executor()};

  std::string at(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(peer.port()) + path;
  }
  Result<std::vector<Milliwatts>> ask(Predictor& predictor, std::vector<PredictionPoint> points) {
    return test::run_task(io, predictor.predict(std::move(points)));
  }
  // The whole sentence, without the peer's address.
  std::string told(Predictor& predictor) {
    const auto answer = ask(predictor, {point()});
    if (answer) return "answered";
    std::string text = std::string(to_string(answer.error().code)) + ": " + answer.error().text();
    const std::string port = ":" + std::to_string(peer.port());
    for (auto at = text.find(port); at != std::string::npos; at = text.find(port)) {
      text.erase(at, port.size());
    }
    return text;
  }
};

TEST_SUITE_BEGIN("mlserver");

TEST_CASE_FIXTURE(Fixture, "TensorFlow Serving: a batch is one request, without credentials") {
  auto made = make_tf_serving(io.get_executor(), at("/v1/models/konohana/versions/1218:predict"),
                              "konohana", allowing("127.0.0.1"));
  REQUIRE(made.has_value());
  peer.reply(json_response(200, R"({"outputs":[[150.5],[160.25]]})"));
  const auto watts = ask(**made, {point(), point()});
  REQUIRE(watts.has_value());
  CHECK(*watts == std::vector{Milliwatts{150500}, Milliwatts{160250}});
  REQUIRE(peer.requests().size() == 1);
  CHECK(peer.request_lines().front() == "POST /v1/models/konohana/versions/1218:predict HTTP/1.1");
  const std::string& request = peer.requests().front();
  CHECK(request.ends_with(R"({"signature_name":"konohana","inputs":[[0.5,0.5,0.5,0.5],)"
                          R"([0.5,0.5,0.5,0.5]]})"));
  CHECK(request.find("Authorization") == std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "predictors: what came back is told, with endpoint and model") {
  struct Case {
    Script answer;
    std::string want;
  };
  const std::string name = "TFServing http://127.0.0.1/v1/models/power: ";
  std::vector<Case> cases;
  cases.push_back({json_response(404, "{\"error\":\"no servable Latest(power)\"}"),
                   "not_found: " + name +
                       "HTTP 404: there is no model \"power\" (answer: "
                       "{\"error\":\"no servable Latest(power)\"})"});
  cases.push_back({test::response(500, "Internal Server Error"),
                   "unavailable: " + name +
                       "HTTP 500: the model or its server failed (answer: Internal Server Error)"});
  cases.push_back(
      {json_response(422, "{}"),
       "invalid_argument: " + name + "HTTP 422: it does not take these inputs (answer: {})"});
  cases.push_back(
      {test::response(302, "", {{"Location", "http://elsewhere/"}}),
       "forbidden: " + name +
           "HTTP 302: redirects are not followed; give the address it leads to (answer: "
           "http://elsewhere/)"});
  cases.push_back({json_response(200, R"({"outputs":[[NaN]]})"),
                   "out_of_range: " + name + "outputs[0] is nan"});
  cases.push_back({json_response(200, R"({"outputs":[[-2]]})"),
                   "out_of_range: " + name + "outputs[0] is -2 W, which no machine draws"});
  cases.push_back({json_response(200, R"({"outputs":[[1],[2]]})"),
                   "parse: " + name + "outputs has 2 values for 1 points"});
  for (Case& c : cases) {
    auto made =
        make_tf_serving(io.get_executor(), at("/v1/models/power"), "", allowing("127.0.0.1"));
    REQUIRE(made.has_value());
    peer.reply(std::move(c.answer));
    CHECK(told(**made) == c.want);
  }
}

TEST_CASE_FIXTURE(Fixture, "predictors: one that says nothing is not waited for") {
  auto made = make_tf_serving(io.get_executor(), at("/v1/models/power"), "", allowing("127.0.0.1"));
  REQUIRE(made.has_value());
  peer.reply(Script{}.stall());
  CHECK(told(**made).starts_with("timeout: TFServing http://127.0.0.1/v1/models/power: "));
}

TEST_CASE_FIXTURE(Fixture, "predictors: an input that is not known fails before anything is sent") {
  auto made = make_tf_serving(io.get_executor(), at("/v1/models/power"), "", allowing("127.0.0.1"));
  PredictionPoint cold = point();
  cold.cpu2_celsius.reset();
  CHECK((*made)->lacks(cold) == "the cpu2 temperature is not known");
  CHECK((*made)->lacks(point()).empty());
  const auto answer = ask(**made, {point(), cold});
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().code == ErrorCode::invalid_argument);
  CHECK(peer.requests().empty());
  CHECK(ask(**made, {})->empty());
}

TEST_CASE_FIXTURE(Fixture, "predictors: only hosts on the list are asked") {
  auto none = make_mlserver(io.get_executor(), at("/v2/models/m/versions/v0.1.0/infer"),
                            PredictorSettings{});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == ErrorCode::forbidden);
  CHECK(none.error().message.find("--endpoint-allow 127.0.0.1") != std::string::npos);
  // A name that resolves to an address outside of the list.
  auto named = make_tf_serving(io.get_executor(),
                               "http://localhost:" + std::to_string(peer.port()) + "/v1/models/m",
                               "", allowing("10.0.0.0/8"));
  REQUIRE(named.has_value());
  const auto answer = ask(**named, {point()});
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().code == ErrorCode::forbidden);
  CHECK(answer.error().message.find("--endpoint-allow") != std::string::npos);
  CHECK(peer.connections() == 0);
}

TEST_CASE_FIXTURE(Fixture, "MLServer: metadata first, once, and again after a failure") {
  auto made = make_mlserver(io.get_executor(), at("/v2/models/power/versions/v0.1.0/infer"),
                            allowing("127.0.0.1"));
  REQUIRE(made.has_value());
  CHECK((*made)->name() == "MLServer " + at("/v2/models/power/versions/v0.1.0"));
  const char* metadata =
      R"({"name":"power","inputs":[{"name":"AmbientTemp","datatype":"FP64","shape":[-1,1]},)"
      R"({"name":"CPUUsage","datatype":"FP64","shape":[-1,1]}]})";
  const char* answer = R"({"outputs":[{"data":[100]}]})";
  peer.reply(json_response(200, metadata));
  peer.reply(json_response(200, answer));
  peer.reply(json_response(200, answer));
  CHECK(told(**made) == "answered");
  CHECK(told(**made) == "answered");
  peer.reply(test::response(500, "Traceback (most recent call last)"));
  CHECK(told(**made).starts_with("unavailable: MLServer http://127.0.0.1/v2/models/power/"));
  peer.reply(json_response(200, metadata));
  peer.reply(json_response(200, answer));
  CHECK(told(**made) == "answered");
  const std::string path = " /v2/models/power/versions/v0.1.0";
  CHECK(peer.request_lines() ==
        std::vector<std::string>{"GET" + path + " HTTP/1.1", "POST" + path + "/infer HTTP/1.1",
                                 "POST" + path + "/infer HTTP/1.1",
                                 "POST" + path + "/infer HTTP/1.1", "GET" + path + " HTTP/1.1",
                                 "POST" + path + "/infer HTTP/1.1"});
  CHECK(peer.requests()[1].find(R"("name":"AmbientTemp","shape":[1,1])") <
        peer.requests()[1].find("CPUUsage"));
}

TEST_CASE_FIXTURE(Fixture, "predictors: an endpoint that is none is refused with what is wanted") {
  for (const char* url :
       {"", "power", "http://h:8501/", "http://h:8501/v1/models/", "http://h:8501/v1/models/a/b",
        "http://h:8501/v1/models/%2e%2e", "http://h:8501/v1/models/%zz", "ftp://h/v1/models/a",
        "http://h:8501/v1/models/a?key=1", "http://h:8501/v1/models/a/versions/"}) {
    CAPTURE(url);
    const auto made = make_tf_serving(io.get_executor(), url, "", allowing("0.0.0.0/0"));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(made.error().message.find("http[s]://HOST:PORT/v1/models/MODEL") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "predictors: WAO's fake looks at the extra work only") {
  const auto fake = make_fake_predictor({watts(100), watts(10)});
  PredictionPoint more = point();
  more.extra = Millicores{500};
  CHECK(*ask(*fake, {point(), more}) == std::vector{Milliwatts{100'000}, Milliwatts{105'000}});
}

TEST_CASE_FIXTURE(Fixture, "predictors: a local model that cannot say fails the batch") {
  const auto local =
      make_local_predictor("Model", [](const PredictionPoint&) -> Result<Milliwatts> {
        return fail(ErrorCode::unsupported, "too few samples");
      });
  CHECK(ask(*local, {point()}).error().message == "Model: too few samples");
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::telemetry
