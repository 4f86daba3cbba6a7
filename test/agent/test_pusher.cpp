#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "agent/pusher.hpp"
#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::agent {
namespace {

using hardware::FakeBmc;  // any scripted HTTP server

telemetry::AgentSample sample(int number) {
  telemetry::AgentSample sample;
  sample.time = TimePoint{std::chrono::seconds{number}};
  return sample;
}

struct Fixture {
  Fixture() { std::ofstream(token_file) << "secret-1\n"; }
  ~Fixture() { std::filesystem::remove(token_file); }
  Pusher make() {
    return Pusher(server.executor(), {.url = *net::parse_url(server.address("http", "/base/")),
                                      .ca_file = {},
                                      .token_file = token_file,
                                      .node = "n1",
                                      .boot_id = "b1"});
  }
  std::vector<telemetry::AgentSample> received() const {
    return telemetry::decode_batch(server.requests().back().body)->samples;
  }
  const std::string kLine = "POST /base/metrics-ingest";
  std::string token_file =
      (std::filesystem::temp_directory_path() / ("kwatt-token-" + std::to_string(::getpid())))
          .string();
  FakeBmc server;
};

TEST_CASE_FIXTURE(Fixture, "samples that were taken are not sent again") {
  server.on(kLine, 200, "");
  Pusher pusher = make();
  pusher.add(sample(1));
  pusher.add(sample(2));
  REQUIRE(server.run(pusher.push()));
  CHECK(received().size() == 2);
  CHECK(server.requests().back().headers.get("Authorization") == "Bearer secret-1");
  CHECK(server.requests().back().headers.get("Content-Type") == "application/json");
  CHECK(pusher.waiting() == 0);
  REQUIRE(server.run(pusher.push()));  // still asks for a sign of life
  CHECK(received().empty());
}

TEST_CASE_FIXTURE(Fixture, "what an answer means for the samples and the caller") {
  const struct {
    int status;
    ErrorCode code;
    bool kept;
  } cases[] = {{503, ErrorCode::unavailable, true},       {500, ErrorCode::unavailable, true},
               {429, ErrorCode::too_many_requests, true}, {401, ErrorCode::unauthorized, true},
               {403, ErrorCode::forbidden, true},         {302, ErrorCode::protocol, true},
               {404, ErrorCode::protocol, true},          {400, ErrorCode::invalid_argument, false},
               {413, ErrorCode::invalid_argument, false}};
  for (const auto& c : cases) {
    CAPTURE(c.status);
    server.on(kLine, c.status, "why");
    Pusher pusher = make();
    pusher.add(sample(1));
    const auto pushed = server.run(pusher.push());
    REQUIRE_FALSE(pushed);
    CHECK(pushed.error().code == c.code);
    CHECK(pushed.error().server_text == "why");
    CHECK((pusher.waiting() == 1) == c.kept);
  }
}

TEST_CASE_FIXTURE(Fixture, "the token is read for every push, and none is not pushed without") {
  server.on(kLine, 200, "");
  Pusher pusher = make();
  REQUIRE(server.run(pusher.push()));
  std::ofstream(token_file) << "secret-2\n";
  REQUIRE(server.run(pusher.push()));
  CHECK(server.requests().back().headers.get("Authorization") == "Bearer secret-2");
  std::ofstream(token_file) << "\n";
  CHECK(server.run(pusher.push()).error().code == ErrorCode::io);
  std::filesystem::remove(token_file);
  CHECK(server.run(pusher.push()).error().code == ErrorCode::io);
  CHECK(server.requests().size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "a controller that follows takes samples, and is no sign of life") {
  Pusher pusher = make();
  server.on(kLine, 204, "", {{"Kwatt-Leading", "false"}});
  pusher.add(sample(1));
  const auto followed = server.run(pusher.push());
  REQUIRE(followed);
  CHECK_FALSE(*followed);
  CHECK(pusher.waiting() == 0);
  server.on(kLine, 204, "", {{"Kwatt-Leading", "true"}});
  CHECK(*server.run(pusher.push()));
}

TEST_CASE_FIXTURE(Fixture, "while nobody takes them the oldest samples go first") {
  server.on(kLine, 200, "");
  Pusher pusher = make();
  for (int i = 0; i < 700; ++i) pusher.add(sample(i));
  CHECK(pusher.waiting() == telemetry::kMaximumSamples);
  REQUIRE(server.run(pusher.push()));
  CHECK(received().front().time == TimePoint{std::chrono::seconds{100}});
  CHECK(received().back().time == TimePoint{std::chrono::seconds{699}});
}

TEST_CASE_FIXTURE(Fixture, "samples that came while a push was under way are kept for the next") {
  Pusher pusher = make();
  server.on(kLine, [&](const net::Request&) {
    pusher.add(sample(2));
    net::Response response;
    response.status = 200;
    return response;
  });
  pusher.add(sample(1));
  REQUIRE(server.run(pusher.push()));
  CHECK(pusher.waiting() == 1);
}

}  // namespace
}  // namespace kwatt::agent
