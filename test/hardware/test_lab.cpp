#include <doctest/doctest.h>

#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

std::string document(const std::string& state, const std::string& watts) {
  return R"({"name":"n1","state":")" + state + R"(","since":"2026-11-20T12:00:00.123Z","watts":)" +
         watts + R"(,"capWatts":null})";
}

struct Fixture {
  FakeBmc bmc;
  std::unique_ptr<PowerDriver> driver = bmc.driver("lab", "/machines/n1");
};

TEST_CASE_FIXTURE(Fixture, "lab: state and watts come from the power document") {
  bmc.on("GET /machines/n1/power", 200, document("On", "182.437"));
  CHECK(*bmc.run(driver->state()) == MachinePower::on);
  CHECK(*bmc.run(driver->power_reading()) == std::optional{Milliwatts{182'437}});
  bmc.on("GET /machines/n1/power", 200, document("PoweringOff", "null"));
  CHECK(*bmc.run(driver->state()) == MachinePower::powering_off);
  CHECK_FALSE(bmc.run(driver->power_reading())->has_value());
}

TEST_CASE_FIXTURE(Fixture, "lab: a lying meter does not hide the state") {
  bmc.on("GET /machines/n1/power", 200, document("Off", "4294967295.0"));
  CHECK(*bmc.run(driver->state()) == MachinePower::off);
  CHECK(bmc.run(driver->power_reading()).error().code == ErrorCode::protocol);
}

TEST_CASE_FIXTURE(Fixture, "lab: resets and caps carry their bodies and the operation id") {
  bmc.on("POST /machines/n1/power", 202, document("PoweringOff", "20"));
  bmc.on("PUT /machines/n1/cap", 200, document("On", "20"));
  REQUIRE(bmc.run(driver->reset(Reset::graceful_shutdown, "op-9")));
  CHECK(bmc.requests().back().body == R"({"reset":"GracefulShutdown"})");
  CHECK(bmc.requests().back().headers.get("Kwatt-Operation-Id") == "op-9");
  REQUIRE(bmc.run(driver->set_power_limit(watts(250), "op-1")));
  CHECK(bmc.requests().back().headers.get("Kwatt-Operation-Id") == "op-1");
  CHECK(bmc.requests().back().body == R"({"watts":250.000})");
  REQUIRE(bmc.run(driver->set_power_limit(std::nullopt, "op-1")));
  CHECK(bmc.requests().back().body == R"({"watts":null})");
}

TEST_CASE_FIXTURE(Fixture, "lab: refusals and broken answers are told apart") {
  bmc.on("POST /machines/n1/power", 409, R"({"error":"the machine is shutting down"})");
  const auto busy = bmc.run(driver->reset(Reset::on, ""));
  REQUIRE_FALSE(busy);
  CHECK(busy.error().code == ErrorCode::conflict);
  CHECK(busy.error().server_text == "the machine is shutting down");
  bmc.on("PUT /machines/n1/cap", 400, R"({"error":"outside"})");
  CHECK(bmc.run(driver->set_power_limit(watts(1), "op-1")).error().code == ErrorCode::out_of_range);
  const struct {
    int status;
    const char* body;
    ErrorCode code;
  } cases[] = {{401, "{}", ErrorCode::unauthorized},
               {503, "{}", ErrorCode::unavailable},
               {404, "{}", ErrorCode::not_found},
               {302, "", ErrorCode::protocol},
               {200, "<html>", ErrorCode::protocol},
               {200, R"({"state":"On")", ErrorCode::protocol},
               {200, R"({"state":"Melted"})", ErrorCode::protocol}};
  for (const auto& c : cases) {
    CAPTURE(c.status);
    CAPTURE(c.body);
    bmc.on("GET /machines/n1/power", c.status, c.body);
    CHECK(bmc.run(driver->state()).error().code == c.code);
  }
}

}  // namespace
}  // namespace kwatt::hardware
