// Session login authentication of DSP0266, basic authentication, and pauses.
#include <thread>

#include <doctest/doctest.h>

#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

TEST_SUITE_BEGIN("redfish");

const std::string kSystem = "/redfish/v1/Systems/1";
const std::string kSessions = "/redfish/v1/SessionService/Sessions";

// A service that wants the newest token it has given out.
struct SessionService {
  FakeBmc bmc;
  int opened = 0;
  std::string valid;

  SessionService() {
    bmc.on("GET /redfish/v1/", 200,
           R"({"Links":{"Sessions":{"@odata.id":")" + kSessions + R"("}}})");
    bmc.on("POST " + kSessions, [this](const net::Request& request) {
      if (request.body != R"({"UserName":"admin","Password":"secret"})") {
        return net::Response(401, {}, R"({"error":{"message":"no such user"}})");
      }
      valid = "token-" + std::to_string(++opened);
      net::Headers headers{{"X-Auth-Token", valid},
                           {"Location", kSessions + "/" + std::to_string(opened)}};
      return net::Response(201, headers, "{}");
    });
    bmc.on("GET " + kSystem, [this](const net::Request& request) {
      const bool good = !valid.empty() && request.headers.get("X-Auth-Token") == valid;
      return net::Response(good ? 200 : 401, {}, R"({"PowerState":"On"})");
    });
  }
};

TEST_CASE_FIXTURE(SessionService, "a session is opened once, used again, and deleted at the end") {
  auto driver = bmc.driver("redfish+http", kSystem);
  for (int i = 0; i < 3; ++i) CHECK(*bmc.run(driver->state()) == MachinePower::on);
  CHECK(opened == 1);
  for (const net::Request& request : bmc.requests()) {
    CHECK(request.headers.get("Authorization").empty());
  }
  bmc.on("DELETE " + kSessions + "/1", 204, "");
  bmc.run(driver->close());
  CHECK(bmc.lines().back() == "DELETE " + kSessions + "/1");
  CHECK(bmc.requests().back().headers.get("X-Auth-Token") == "token-1");
}

TEST_CASE_FIXTURE(SessionService, "a session that the service has ended is replaced once") {
  auto driver = bmc.driver("redfish+http", kSystem);
  REQUIRE(bmc.run(driver->state()));
  valid = "none";
  CHECK(*bmc.run(driver->state()) == MachinePower::on);
  CHECK(opened == 2);
  // A service that refuses the new one too is not asked for ever.
  bmc.on("GET " + kSystem, 401, "");
  CHECK(bmc.run(driver->state()).error().code == ErrorCode::unauthorized);
  CHECK(opened == 3);
}

TEST_CASE_FIXTURE(SessionService, "refused credentials are not tried a second way") {
  auto driver = bmc.driver("redfish+http", kSystem, Credentials{"admin", "wrong"});
  const auto got = bmc.run(driver->state());
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::unauthorized);
  CHECK(got.error().text().find("no such user") != std::string::npos);
  CHECK(got.error().text().find("wrong") == std::string::npos);
  CHECK(bmc.lines() == std::vector<std::string>{"GET /redfish/v1/", "POST " + kSessions});
  bmc.on("POST " + kSessions, 400,
         R"({"error":{"@Message.ExtendedInfo":[{"MessageId":"iLO.2.8.UnauthorizedLogin"}]}})");
  CHECK(bmc.run(driver->state()).error().code == ErrorCode::unauthorized);
}

TEST_CASE_FIXTURE(SessionService,
                  "a service whose sessions do not work gets basic authentication") {
  SUBCASE("not found") {
    bmc.on("POST " + kSessions, 404, "");
  }
  SUBCASE("too many sessions") {
    bmc.on("POST " + kSessions, 400, R"({"error":{"message":"session limit exceeded"}})");
  }
  SUBCASE("no token in the answer") {
    bmc.on("POST " + kSessions, 201, "{}");
  }
  SUBCASE("a token that is no header") {
    bmc.on("POST " + kSessions, 201, "{}", {{"X-Auth-Token", "a b"}});
  }
  bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  auto driver = bmc.driver("redfish+http", kSystem);
  CHECK(*bmc.run(driver->state()) == MachinePower::on);
  CHECK(bmc.requests().back().headers.get("Authorization") == "Basic YWRtaW46c2VjcmV0");
  const std::size_t before = bmc.requests().size();
  bmc.run(driver->close());
  CHECK(bmc.requests().size() == before);
}

TEST_CASE_FIXTURE(SessionService, "without credentials nothing is sent that identifies anybody") {
  bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  auto driver = bmc.driver("redfish+http", kSystem, std::nullopt);
  REQUIRE(bmc.run(driver->state()));
  CHECK(bmc.lines() == std::vector<std::string>{"GET " + kSystem});
  CHECK(bmc.requests().back().headers.get("Authorization").empty());
}

TEST_CASE_FIXTURE(SessionService, "an absolute Location is used on the same service only") {
  bmc.on("POST " + kSessions, 201, "{}",
         {{"X-Auth-Token", "token"}, {"Location", "https://elsewhere.example/redfish/v1/S/9"}});
  bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  auto driver = bmc.driver("redfish+http", kSystem);
  REQUIRE(bmc.run(driver->state()));
  bmc.run(driver->close());
  CHECK(bmc.lines().back() == "DELETE /redfish/v1/S/9");
}

TEST_CASE("Retry-After: nothing is sent before its time, and then everything is as before") {
  FakeBmc bmc;
  for (const int status : {503, 429}) {
    CAPTURE(status);
    bmc.on("GET " + kSystem, status, R"({"error":{"message":"busy"}})", {{"Retry-After", "1"}});
    auto driver = bmc.driver("redfish+http", kSystem);
    const auto first = bmc.run(driver->state());
    REQUIRE_FALSE(first);
    CHECK(first.error().server_text == "busy");
    CHECK(first.error().retry_after == Duration{1000});
    const std::size_t before = bmc.requests().size();
    const auto second = bmc.run(driver->reset(Reset::force_off, "op"));
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::unavailable);
    CHECK(second.error().retry_after.has_value());
    CHECK(bmc.requests().size() == before);
    bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
    std::this_thread::sleep_for(std::chrono::milliseconds{1050});
    CHECK(*bmc.run(driver->state()) == MachinePower::on);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::hardware
