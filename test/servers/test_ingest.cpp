#include <doctest/doctest.h>

#include "servers/ingest.hpp"
#include "telemetry/ingest_format.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

namespace kwatt::servers {
namespace {

using telemetry::Source;

const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");

constexpr const char* kAgent = "system:serviceaccount:kwatt-system:kwatt-agent";

// An API server to which every token is that of an agent on n1, but "stranger" is of nobody's node
// and "pod" of another ServiceAccount.
class Reviews final : public test::StubClient {
 public:
  Task<Text> create(const kube::Resource&, std::string, std::string body) override {
    const bool stranger = body.find("stranger") != std::string::npos;
    co_return std::string(R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{)") +
        R"("username":")" + (body.find("\"pod\"") != std::string::npos ? "u" : kAgent) +
        R"(","extra":{)" + (stranger ? "" : R"("authentication.kubernetes.io/node-name":["n1"])") +
        "}}}}";
  }
};

struct Fixture {
  Reviews client;
  ManualClock clock{kNow};
  TokenReviewer reviewer{client, clock};
  telemetry::SampleStore samples;
  Metrics metrics;
  std::vector<std::string> first;
  bool leads = true;
  boost::asio::io_context io;
  net::Handler handler =
      ingest_handler({.reviewer = reviewer,
                      .agent_user = kAgent,
                      .samples = samples,
                      .clock = clock,
                      .metrics = metrics,
                      .leading = [this] { return leads; },
                      .first_sample = [this](const std::string& node) { first.push_back(node); }});

  net::Response post(const std::string& type, const std::string& body,
                     const std::string& token = "t") {
    net::Request request("POST", "/metrics-ingest");
    request.headers.set("Content-Type", type);
    request.headers.set("Authorization", "Bearer " + token);
    request.body = body;
    return test::run_task(io, handler(std::move(request)));
  }
  std::string batch(const std::string& node, telemetry::PowerSource source) {
    telemetry::AgentSample sample;
    sample.time = clock.now();
    sample.utilization = sample.cpu_busy = Permille{400};
    sample.power = watts(150);
    sample.source = source;
    return telemetry::encode({node, "boot", {sample}});
  }
};

TEST_SUITE("telemetry") {
  TEST_CASE_FIXTURE(Fixture,
                    "ingest: an agent's samples are its own node's, with what they cover") {
    CHECK(post("application/json", batch("n1", telemetry::PowerSource::rapl)).status == 204);
    CHECK_FALSE(samples.samples("n1").back().whole_machine);
    CHECK(first == std::vector<std::string>{"n1"});
    clock.advance(std::chrono::seconds{10});
    CHECK(post("application/json", batch("n1", telemetry::PowerSource::hwmon)).status == 204);
    CHECK(samples.samples("n1").back().whole_machine);
    CHECK(first.size() == 1);
    CHECK(post("application/json", batch("n2", telemetry::PowerSource::hwmon)).status == 403);
    CHECK(samples.size() == 1);
  }

  TEST_CASE_FIXTURE(Fixture,
                    "ingest: a replica that follows takes samples and closes the connection") {
    const auto push = [this] {
      clock.advance(std::chrono::seconds{10});
      return post("application/json", batch("n1", telemetry::PowerSource::hwmon));
    };
    CHECK(push().headers.get("Connection").empty());
    leads = false;
    const net::Response response = push();
    CHECK(response.status == 204);
    CHECK(response.headers.get("Kwatt-Leading") == "false");
    CHECK(response.headers.get("Connection") == "close");
    CHECK(samples.samples("n1").size() == 2);
  }

  TEST_CASE_FIXTURE(Fixture, "ingest: Scaphandre's text is a reading of the token's node") {
    const net::Response response =
        post("text/plain; version=0.0.4", "scaph_host_power_microwatts 42000000\n");
    CHECK(response.status == 204);
    CHECK(response.headers.get("Kwatt-Leading") == "true");
    const telemetry::Reading reading = samples.samples("n1").back();
    CHECK(*reading.power == watts(42));
    CHECK(reading.power_source == Source::scaphandre);
    CHECK_FALSE(reading.whole_machine);
    CHECK_FALSE(reading.has_utilization);
    CHECK_FALSE(reading.from_agent);
    CHECK(first.empty());  // no agent has spoken
  }

  TEST_CASE_FIXTURE(Fixture, "ingest: what is neither, or of nobody's node, is refused") {
    struct Case {
      const char *type, *body, *token;
      int status;
    };
    const Case cases[] = {
        {"text/plain", "<html>", "t", 400},
        {"text/plain", "up 1\n", "t", 400},
        {"text/plain", "scaph_host_power_microwatts 1\n", "stranger", 403},
        {"text/plain", "scaph_host_power_microwatts 1\n", "pod", 403},
        {"application/json", "scaph_host_power_microwatts 1\n", "t", 400},
        {"application/json", "{}", "t", 400},
        {"text/plain", "scaph_host_power_microwatts 1\n", "", 401},
    };
    for (const Case& c : cases) {
      CAPTURE(c.body);
      CHECK(post(c.type, c.body, c.token).status == c.status);
    }
    CHECK(samples.size() == 0);
  }
}

}  // namespace
}  // namespace kwatt::servers
