// Readings and limits in the three models of DSP0268.
#include <doctest/doctest.h>

#include "hardware/redfish_power.hpp"
#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

TEST_SUITE_BEGIN("redfish");

const std::string kSystem = "/redfish/v1/Systems/1";
const std::string kChassis = "/redfish/v1/Chassis/1";
const std::string kPower = "/redfish/v1/P";
const std::string kMetrics = "/redfish/v1/E";

std::string link(const std::string& name, const std::string& path) {
  return '"' + name + R"(":{"@odata.id":")" + path + R"("})";
}

struct Fixture {
  FakeBmc bmc;
  std::unique_ptr<PowerDriver> driver = bmc.driver("redfish+http", kSystem);
  Fixture() {
    bmc.on("GET " + kSystem, 200,
           R"({"PowerState":"On","Links":{"Chassis":[{"@odata.id":")" + kChassis + R"("}]}})");
  }
  void chassis(const std::string& links) { bmc.on("GET " + kChassis, 200, "{" + links + "}"); }
  Result<std::optional<Milliwatts>> reading() { return bmc.run(driver->power_reading()); }
  Result<PowerLimit> limit() { return bmc.run(driver->power_limit()); }
  Result<void> set(std::optional<Milliwatts> watts) {
    return bmc.run(driver->set_power_limit(watts, "op-1"));
  }
};

TEST_CASE_FIXTURE(Fixture, "Power: the reading of the first PowerControl") {
  chassis(link("Power", kPower));
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
    bmc.on("GET " + kPower, 200, std::string(R"({"PowerControl":)") + c.control + "}");
    const auto got = reading();
    REQUIRE(got.has_value() == c.good);
    if (!c.good) {
      CHECK(got.error().code == ErrorCode::protocol);
      continue;
    }
    CHECK(got->has_value() == c.milliwatts.has_value());
    if (c.milliwatts) CHECK((*got)->count() == *c.milliwatts);
  }
  // The way there is found once.
  const std::size_t before = bmc.requests().size();
  (void)reading();
  CHECK(bmc.requests().size() == before + 1);
}

TEST_CASE_FIXTURE(Fixture, "a machine without any power resource has no reading and no limit") {
  SUBCASE("the chassis has no links") {
    chassis("");
  }
  SUBCASE("the chassis is missing") {}
  SUBCASE("the linked resources are missing") {
    chassis(link("Power", kPower) + "," + link("EnvironmentMetrics", kMetrics) + "," +
            link("PowerSubsystem", "/redfish/v1/S"));
  }
  SUBCASE("the system names no chassis") {
    bmc.on("GET " + kSystem, 200, R"({"PowerState":"On"})");
  }
  CHECK_FALSE(reading()->has_value());
  CHECK(limit().error().code == ErrorCode::unsupported);
  CHECK(set(watts(200)).error().code == ErrorCode::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "Power: a limit is set on the version that was read") {
  chassis(link("Power", kPower));
  const auto shows = [&](const std::string& number) {
    bmc.on("GET " + kPower, 200,
           R"({"PowerControl":[{"PowerConsumedWatts":4294967295,"PowerCapacityWatts":600,)"
           R"("PowerLimit":{"LimitInWatts":)" +
               number + "}}]}",
           {{"ETag", "\"v7\""}});
  };
  shows("null");
  bmc.on("PATCH " + kPower, 200, "{}");
  auto now = limit();
  REQUIRE(now);
  CHECK_FALSE(now->limit.has_value());
  CHECK(now->highest == watts(600));
  CHECK_FALSE(now->lowest.has_value());
  shows("251.5");
  CHECK(limit()->limit == Milliwatts{251'500});
  shows("0");
  CHECK_FALSE(limit()->limit.has_value());
  shows("-7");
  CHECK(limit().error().code == ErrorCode::protocol);

  REQUIRE(set(watts(250)));
  CHECK(bmc.requests().back().headers.get("If-Match") == "\"v7\"");
  CHECK(bmc.requests().back().body == R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":250}}]})");
  REQUIRE(set(Milliwatts{250'500}));
  CHECK(bmc.requests().back().body ==
        R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":250.500}}]})");
  REQUIRE(set(std::nullopt));
  CHECK(bmc.requests().back().body == R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":null}}]})");
  bmc.on("PATCH " + kPower, 412, "");
  CHECK(set(watts(250)).error().code == ErrorCode::conflict);
  bmc.on("PATCH " + kPower, 400, R"({"error":{"message":"not in the supported range"}})");
  const auto refused = set(watts(1));
  CHECK(refused.error().code == ErrorCode::out_of_range);
  CHECK(refused.error().server_text == "not in the supported range");
  // Its limit can go as well, with a firmware update for example.
  bmc.on("GET " + kPower, 200, R"({"PowerControl":[{}]})");
  CHECK(set(watts(250)).error().code == ErrorCode::unsupported);
}

TEST_CASE_FIXTURE(Fixture, "EnvironmentMetrics come before Power") {
  chassis(link("Power", kPower) + "," + link("EnvironmentMetrics", kMetrics));
  bmc.on("GET " + kPower, 200, R"({"PowerControl":[{"PowerConsumedWatts":1,"PowerLimit":{}}]})");
  const auto shows = [&](const std::string& text) {
    bmc.on(
        "GET " + kMetrics, 200,
        R"({"@odata.etag":"W/\"3\"","PowerWatts":{"Reading":374},"PowerLimitWatts":)" + text + "}");
  };
  shows(R"({"SetPoint":500,"ControlMode":"Automatic","AllowableMin":200,"AllowableMax":750})");
  bmc.on("PATCH " + kMetrics, 200, "{}");
  CHECK(*reading() == std::optional{watts(374)});
  auto now = limit();
  REQUIRE(now);
  CHECK(now->limit == watts(500));
  CHECK(now->lowest == watts(200));
  CHECK(now->highest == watts(750));
  REQUIRE(set(watts(300)));
  CHECK(bmc.lines().back() == "PATCH " + kMetrics);
  CHECK(bmc.requests().back().headers.get("If-Match") == "W/\"3\"");
  CHECK(bmc.requests().back().body ==
        R"({"PowerLimitWatts":{"ControlMode":"Automatic","SetPoint":300}})");
  REQUIRE(set(std::nullopt));
  CHECK(bmc.requests().back().body == R"({"PowerLimitWatts":{"ControlMode":"Disabled"}})");
  shows(R"({"SetPoint":500,"ControlMode":"Disabled"})");
  CHECK_FALSE(limit()->limit.has_value());
  shows(R"({"SetPoint":null})");
  CHECK_FALSE(limit()->limit.has_value());
  REQUIRE(set(watts(300)));
  CHECK(bmc.requests().back().body == R"({"PowerLimitWatts":{"SetPoint":300}})");
  REQUIRE(set(std::nullopt));
  CHECK(bmc.requests().back().body == R"({"PowerLimitWatts":{"SetPoint":null}})");
}

TEST_CASE_FIXTURE(Fixture, "reading and limit may come from different models") {
  chassis(link("Power", kPower) + "," + link("EnvironmentMetrics", kMetrics));
  bmc.on("GET " + kMetrics, 200, R"({"PowerWatts":{"Reading":374}})");
  bmc.on("GET " + kPower, 200, R"({"PowerControl":[{"PowerLimit":{"LimitInWatts":420}}]})");
  CHECK(*reading() == std::optional{watts(374)});
  CHECK(limit()->limit == watts(420));
}

TEST_CASE_FIXTURE(Fixture, "PowerSubsystem: the sum of all supplies, or nothing") {
  chassis(link("PowerSubsystem", "/redfish/v1/S"));
  bmc.on("GET /redfish/v1/S", 200, "{" + link("PowerSupplies", "/redfish/v1/U") + "}");
  bmc.on("GET /redfish/v1/U", 200,
         R"({"Members":[{"@odata.id":"/redfish/v1/U/1"},{"@odata.id":"/redfish/v1/U/2"}]})");
  bmc.on("GET /redfish/v1/U/1", 200, "{" + link("Metrics", "/redfish/v1/M/1") + "}");
  bmc.on("GET /redfish/v1/U/2", 200, "{" + link("Metrics", "/redfish/v1/M/2") + "}");
  bmc.on("GET /redfish/v1/M/1", 200, R"({"InputPowerWatts":{"Reading":101.5}})");
  bmc.on("GET /redfish/v1/M/2", 200, R"({"InputPowerWatts":{"Reading":99}})");
  CHECK(*reading() == std::optional{Milliwatts{200'500}});
  CHECK(limit().error().code == ErrorCode::unsupported);
  bmc.on("GET /redfish/v1/M/2", 200, R"({"InputPowerWatts":{"Reading":null}})");
  CHECK_FALSE(reading()->has_value());
}

TEST_CASE("a machine of several chassis: the first that knows about power counts") {
  FakeBmc bmc;
  bmc.on("GET " + kSystem, 200,
         R"({"PowerState":"On","Links":{"Chassis":[{"@odata.id":"/redfish/v1/C/board"},)"
         R"({"@odata.id":"/redfish/v1/C/rack"}]}})");
  bmc.on("GET /redfish/v1/C/board", 200, "{}");
  bmc.on("GET /redfish/v1/C/rack", 200, "{" + link("Power", kPower) + "}");
  bmc.on("GET " + kPower, 200, R"({"PowerControl":[{"PowerConsumedWatts":42}]})");
  auto driver = bmc.driver("redfish+http", kSystem);
  CHECK(*bmc.run(driver->power_reading()) == std::optional{watts(42)});
}

TEST_CASE("what is not a power resource is a protocol error with an excerpt") {
  for (const char* body : {"<html>", "[]", "", R"({"PowerControl":)"}) {
    CAPTURE(body);
    CHECK(redfish::parse_power(body).has_error());
    CHECK(redfish::parse_environment(body).has_error());
    CHECK(redfish::parse_chassis(body).has_error());
  }
  for (const char* body : {"{}", R"({"PowerControl":7,"PowerWatts":7,"PowerLimitWatts":[]})"}) {
    CAPTURE(body);
    REQUIRE(redfish::parse_environment(body).has_value());
    CHECK_FALSE(redfish::parse_environment(body)->limitable);
    CHECK_FALSE(redfish::parse_power(body)->metered);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::hardware
