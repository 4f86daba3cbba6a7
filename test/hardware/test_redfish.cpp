#include <doctest/doctest.h>

#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

const std::string kSystem = "/redfish/v1/Systems/1";
const std::string kReset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

std::string system_body(const std::string& state, const std::string& allowed,
                        const std::string& target = kReset) {
  return R"({"PowerState":")" + state + R"(","Actions":{"#ComputerSystem.Reset":{"target":")" +
         target + R"(","ResetType@Redfish.AllowableValues":[)" + allowed +
         R"(]}},"Links":{"Chassis":[{"@odata.id":"/redfish/v1/Chassis/1"}]}})";
}

const std::string kAll = R"("On","ForceOff","GracefulShutdown","ForceRestart","Nmi")";

struct Fixture {
  FakeBmc bmc;
  std::unique_ptr<PowerDriver> driver = bmc.driver("redfish+http", kSystem);
  Result<MachinePower> state() { return bmc.run(driver->state()); }
  Result<void> reset(Reset reset) { return bmc.run(driver->reset(reset, "op-1")); }
  Result<std::optional<Milliwatts>> reading() { return bmc.run(driver->power_reading()); }
  Result<void> limit(std::optional<Milliwatts> watts) {
    return bmc.run(driver->set_power_limit(watts));
  }
};

TEST_CASE_FIXTURE(Fixture, "the power state is the machine's own word") {
  const struct {
    const char* word;
    MachinePower power;
  } cases[] = {{"On", MachinePower::on},
               {"Off", MachinePower::off},
               {"PoweringOn", MachinePower::powering_on},
               {"PoweringOff", MachinePower::powering_off},
               {"Paused", MachinePower::unknown},
               {"", MachinePower::unknown}};
  for (const auto& c : cases) {
    CAPTURE(c.word);
    bmc.on("GET " + kSystem, 200, system_body(c.word, kAll));
    CHECK(*state() == c.power);
  }
  CHECK(bmc.requests().front().headers.get("Authorization") == "Basic YWRtaW46c2VjcmV0");
}

TEST_CASE_FIXTURE(Fixture, "a reset goes to the target that the machine names") {
  bmc.on("GET " + kSystem, 200, system_body("On", kAll, "/elsewhere/reset"));
  bmc.on("POST /elsewhere/reset", 204, "");
  REQUIRE(reset(Reset::graceful_shutdown));
  const net::Request& request = bmc.requests().back();
  CHECK(request.body == R"({"ResetType":"GracefulShutdown"})");
  CHECK(request.headers.get("Kwatt-Operation-Id") == "op-1");
  CHECK(request.headers.get("Content-Type") == "application/json");
}

TEST_CASE_FIXTURE(Fixture, "only reset types on offer are sent") {
  struct Case {
    const char* name;
    std::string allowed;
    Reset reset;
    std::string sent;  // "": refused as unsupported
  };
  const Case cases[] = {
      {"all", kAll, Reset::on, "On"},
      {"all", kAll, Reset::force_off, "ForceOff"},
      {"no graceful shutdown", R"("On","ForceOff")", Reset::graceful_shutdown, ""},
      {"no list at all", "", Reset::graceful_shutdown, "GracefulShutdown"},
      {"only ForceOn", R"("ForceOn","ForceOff")", Reset::on, "ForceOn"},
      {"nothing but a cycle", R"("PowerCycle")", Reset::force_off, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    bmc.on("GET " + kSystem, 200, system_body("Off", c.allowed));
    bmc.on("POST " + kReset, 204, "");
    const std::size_t before = bmc.requests().size();
    const auto done = reset(c.reset);
    if (c.sent.empty()) {
      REQUIRE_FALSE(done);
      CHECK(done.error().code == ErrorCode::unsupported);
      CHECK(bmc.requests().size() == before + 1);
    } else {
      REQUIRE(done);
      CHECK(bmc.requests().back().body == R"({"ResetType":")" + c.sent + R"("})");
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "an ActionInfo is asked where the action itself does not list its types") {
  bmc.on("GET " + kSystem, 200,
         R"({"PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":")" + kReset +
             R"(","@Redfish.ActionInfo":"/redfish/v1/info"}}})");
  bmc.on("GET /redfish/v1/info", 200,
         R"({"Parameters":[{"Name":"Other","AllowableValues":["GracefulShutdown"]},)"
         R"({"Name":"ResetType","AllowableValues":["On","ForceOff"]}]})");
  CHECK(reset(Reset::graceful_shutdown).error().code == ErrorCode::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "a reset to the state the machine is in may be refused by it") {
  bmc.on("POST " + kReset, 409, R"({"error":{"message":"already"}})");
  bmc.on("GET " + kSystem, 200, system_body("Off", kAll));
  CHECK(reset(Reset::force_off));
  bmc.on("GET " + kSystem, 200, system_body("On", kAll));
  CHECK(reset(Reset::on));
  const auto done = reset(Reset::force_off);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::conflict);
}

TEST_CASE_FIXTURE(Fixture, "a system without the reset action is unsupported") {
  bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  CHECK(reset(Reset::on).error().code == ErrorCode::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "HTTP statuses become errors that keep the machine's words") {
  struct Case {
    int status;
    std::string body;
    ErrorCode code;
    std::string words;
  };
  const Case cases[] = {
      {401,
       R"({"error":{"code":"x","message":"general","@Message.ExtendedInfo":)"
       R"([{"Message":"Wrong password."},{"MessageId":"Base.1.0.NoValidSession"}]}})",
       ErrorCode::unauthorized, "Wrong password. Base.1.0.NoValidSession"},
      {403, R"({"error":{"message":"Not for you."}})", ErrorCode::forbidden, "Not for you."},
      {404, "", ErrorCode::not_found, ""},
      {500, "<html>\n<b>oops</b></html>", ErrorCode::protocol, "<html> <b>oops</b></html>"},
      {501, "{}", ErrorCode::unsupported, "{}"},
      {503, "busy", ErrorCode::unavailable, "busy"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.status);
    bmc.on("GET " + kSystem, c.status, c.body, {{"Retry-After", "7"}});
    const auto got = state();
    REQUIRE_FALSE(got);
    CHECK(got.error().code == c.code);
    CHECK(got.error().server_text == c.words);
    CHECK(got.error().retry_after == Duration{7000});
  }
}

TEST_CASE_FIXTURE(Fixture, "redirects are refused, not followed") {
  bmc.on("GET " + kSystem, 302, "", {{"Location", "http://169.254.169.254/secret"}});
  const auto got = state();
  REQUIRE_FALSE(got);
  CHECK(got.error().code == ErrorCode::protocol);
  CHECK(got.error().server_text == "http://169.254.169.254/secret");
  CHECK(bmc.requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "answers that are no ComputerSystem are protocol errors with an excerpt") {
  const std::string deep(100, '[');
  for (const std::string& body :
       {std::string("<html><title>Login</title></html>"), std::string(""), std::string("[]"),
        std::string("null"), std::string(R"({"Name":"chassis"})"), std::string(R"({"PowerSta)"),
        deep, std::string("\"\xff\"")}) {
    CAPTURE(body);
    bmc.on("GET " + kSystem, 200, body);
    const auto got = state();
    REQUIRE_FALSE(got);
    CHECK(got.error().code == ErrorCode::protocol);
  }
  bmc.on("GET " + kSystem, 200, "<html>\n<title>Login</title></html>");
  CHECK(state().error().server_text == "<html> <title>Login</title></html>");
}

TEST_CASE_FIXTURE(Fixture, "links that leave the service are not followed") {
  for (const char* target : {"http://evil/reset", "//evil/reset", "reset", "/a b", "/a\\n"}) {
    CAPTURE(target);
    bmc.on("GET " + kSystem, 200, system_body("On", kAll, target));
    const std::size_t before = bmc.requests().size();
    const auto done = reset(Reset::on);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::protocol);
    CHECK(bmc.requests().size() == before + 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "too large an answer is refused") {
  bmc.on("GET " + kSystem, 200, std::string(2 * 1024 * 1024, ' ') + system_body("On", kAll));
  CHECK(state().error().code == ErrorCode::protocol);
}

TEST_CASE_FIXTURE(Fixture, "power is read by way of the chassis") {
  bmc.on("GET " + kSystem, 200, system_body("On", kAll));
  bmc.on("GET /redfish/v1/Chassis/1", 200, R"({"Power":{"@odata.id":"/redfish/v1/P"}})");
  struct Case {
    const char* control;
    std::optional<std::int64_t> milliwatts;
    bool good;
  };
  const Case cases[] = {
      {R"([{"PowerConsumedWatts":182.4}])", 182'400, true},
      {R"([{"PowerConsumedWatts":0}])", 0, true},
      {R"([{"PowerConsumedWatts":null}])", std::nullopt, true},
      {R"([{}])", std::nullopt, true},
      {"[]", std::nullopt, true},
      {R"([{"PowerConsumedWatts":"150"}])", std::nullopt, true},
      {R"([{"PowerConsumedWatts":4294967295}])", std::nullopt, false},
      {R"([{"PowerConsumedWatts":-1}])", std::nullopt, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.control);
    bmc.on("GET /redfish/v1/P", 200, std::string(R"({"PowerControl":)") + c.control + "}");
    const auto got = reading();
    REQUIRE(got.has_value() == c.good);
    if (!c.good) {
      CHECK(got.error().code == ErrorCode::protocol);
      continue;
    }
    CHECK(got->has_value() == c.milliwatts.has_value());
    if (c.milliwatts) CHECK((*got)->count() == *c.milliwatts);
  }
}

TEST_CASE_FIXTURE(Fixture, "a machine without a Power resource has no reading and no limit") {
  bmc.on("GET " + kSystem, 200, system_body("On", kAll));
  SUBCASE("the chassis has no link") {
    bmc.on("GET /redfish/v1/Chassis/1", 200, "{}");
  }
  SUBCASE("the chassis is missing") {}
  SUBCASE("the system names no chassis") {
    bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  }
  CHECK_FALSE(reading()->has_value());
  CHECK(limit(watts(200)).error().code == ErrorCode::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "a power limit is set on the version that was read") {
  bmc.on("GET " + kSystem, 200, system_body("On", kAll));
  bmc.on("GET /redfish/v1/Chassis/1", 200, R"({"Power":{"@odata.id":"/redfish/v1/P"}})");
  bmc.on("GET /redfish/v1/P", 200, R"({"PowerControl":[{"PowerConsumedWatts":4294967295}]})",
         {{"ETag", "\"v7\""}});
  bmc.on("PATCH /redfish/v1/P", 200, "{}");
  REQUIRE(limit(watts(250)));
  CHECK(bmc.requests().back().headers.get("If-Match") == "\"v7\"");
  CHECK(bmc.requests().back().body == R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":250}}]})");
  REQUIRE(limit(Milliwatts{250'500}));
  CHECK(bmc.requests().back().body ==
        R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":250.500}}]})");
  REQUIRE(limit(std::nullopt));
  CHECK(bmc.requests().back().body == R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":null}}]})");
  bmc.on("PATCH /redfish/v1/P", 412, "");
  CHECK(limit(watts(250)).error().code == ErrorCode::conflict);
  bmc.on("PATCH /redfish/v1/P", 400, R"({"error":{"message":"not in the supported range"}})");
  const auto refused = limit(watts(1));
  CHECK(refused.error().code == ErrorCode::out_of_range);
  CHECK(refused.error().server_text == "not in the supported range");
}

TEST_CASE("a BMC that cannot be reached is unavailable") {
  boost::asio::io_context io;
  DriverConfig config;
  config.timeout = std::chrono::seconds{2};
  config.address = "redfish+http://127.0.0.1:1" + kSystem;  // nobody listens on port 1
  auto driver = make_driver(io.get_executor(), std::move(config));
  REQUIRE(driver);
  std::optional<ErrorCode> code;
  boost::asio::co_spawn(io, (*driver)->state(),
                        [&](std::exception_ptr, Result<MachinePower> result) {
                          if (!result) code = result.error().code;
                        });
  io.run_for(std::chrono::seconds{10});
  REQUIRE(code);
  CHECK(*code == ErrorCode::unavailable);
}

TEST_CASE("an address that the allow-list refuses is never connected to") {
  FakeBmc bmc;
  boost::asio::io_context io;
  DriverConfig config;
  config.address = bmc.address("redfish+http", kSystem);
  std::string asked;
  config.address_allowed = [&](const std::string& address) {
    asked = address;
    return false;
  };
  auto driver = make_driver(io.get_executor(), std::move(config));
  REQUIRE(driver);
  std::optional<ErrorCode> code;
  boost::asio::co_spawn(io, (*driver)->state(),
                        [&](std::exception_ptr, Result<MachinePower> result) {
                          if (!result) code = result.error().code;
                        });
  io.run_for(std::chrono::seconds{10});
  REQUIRE(code);
  CHECK(*code == ErrorCode::forbidden);
  CHECK(asked == "127.0.0.1");
  CHECK(bmc.requests().empty());
}

TEST_CASE("an address must be one of the known schemes and name a machine") {
  boost::asio::io_context io;
  for (const std::string address :
       {"", "https://10.0.0.7/redfish/v1/Systems/1", "redfish://10.0.0.7/x", "redfish+https://",
        "redfish+https://10.0.0.7", "redfish+https://10.0.0.7/", "redfish+https://u:p@10.0.0.7/x",
        "redfish+https://10.0.0.7:99999/x", "lab://127.0.0.1", "metal3:machines/n1"}) {
    CAPTURE(address);
    DriverConfig config;
    config.address = address;
    auto made = make_driver(io.get_executor(), std::move(config));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace kwatt::hardware
