#include <algorithm>

#include <doctest/doctest.h>

#include "hardware/ipmi.hpp"
#include "hardware/ipmi_messages.hpp"
#include "test/hardware/print_result.hpp"
#include "test/support/run_task.hpp"

TEST_SUITE_BEGIN("ipmi");

namespace kwatt::hardware {
namespace {

TEST_CASE("ipmi: the power state is read from ipmitool's sentence") {
  CHECK(*ipmi::parse_power("Chassis Power is on\n") == MachinePower::on);
  CHECK(*ipmi::parse_power("Chassis Power is off\n") == MachinePower::off);
  const auto other = ipmi::parse_power("Chassis Power is \n");
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::protocol);
}

std::string reading(const std::string& watts, const std::string& state) {
  return "\n    Instantaneous power reading:                   " + watts +
         "\n    Minimum during sampling period:                  1 Watts\n"
         "    Power reading state is:                   " +
         state + "\n\n";
}

TEST_CASE("ipmi: the instantaneous DCMI reading counts, while measuring is active") {
  CHECK(*ipmi::parse_reading(reading("182 Watts", "activated")) == std::optional{watts(182)});
  CHECK_FALSE(ipmi::parse_reading(reading("182 Watts", "deactivated"))->has_value());
  for (const char* wrong : {"65535 Watts", "-3 Watts", "182 Volts", "x Watts", ""}) {
    CAPTURE(wrong);
    const auto answer = ipmi::parse_reading(reading(wrong, "activated"));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::protocol);
  }
}

TEST_CASE("ipmi: a limit counts when it is active") {
  const auto text = [](const std::string& state) {
    return "\n    Current Limit State: " + state +
           "\n    Exception actions:   No Action\n    Power Limit:         200 Watts\n"
           "    Correction time:     0 milliseconds\n";
  };
  const auto active = ipmi::parse_limit(text("Power Limit Active"));
  REQUIRE(active);
  CHECK(active->active);
  CHECK(active->power == watts(200));
  CHECK_FALSE(ipmi::parse_limit(text("No Active Power Limit"))->active);
  CHECK_FALSE(ipmi::parse_limit("Current Limit State: Power Limit Active\n"));
}

TEST_CASE("ipmi: sensors of parts do not pass for the machine") {
  const struct {
    const char* name;
    const char* csv;
    std::optional<std::int64_t> milliwatts;
  } cases[] = {
      {"one for the whole machine beats all others",
       "PSU1 Power In,100,Watts,ok\nPwr Consumption,182,Watts,ok\nCPU Power,60,Watts,ok\n",
       182'000},
      {"inputs of all supplies are summed, outputs and parts are not",
       "PSU1 Power In,100,Watts,ok\nPSU2 Power In,90.5,Watts,ok\nPSU1 Power Out,95,Watts,ok\n"
       "CPU Power,60,Watts,ok\n",
       190'500},
      {"an empty supply bay is no reading of 0",
       "PS1 Input Power,120,Watts,ok\nPS2 Input Power,,,ns\n", 120'000},
      {"the only one is the machine's", "Node Pwr,77,Watts,ok\nTemp,30,degrees C,ok\n", 77'000},
      {"two parts are not", "CPU Power,60,Watts,ok\nMem Power,20,Watts,ok\n", std::nullopt},
      {"no power sensor at all", "Temp,30,degrees C,ok\nFan 1,5000,RPM,ok\n", std::nullopt},
      {"nothing", "", std::nullopt},
      {"garbage", "<html>,x,Watts,ok\nPSU,-5,Watts,ok\nPSU,1e9,Watts,ok\n,,,\n", std::nullopt},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    const auto power = ipmi::sensor_reading(c.csv);
    REQUIRE(power.has_value() == c.milliwatts.has_value());
    if (power) CHECK(power->count() == *c.milliwatts);
  }
}

TEST_CASE("ipmi: what ipmitool complains about is told apart") {
  const struct {
    const char* err;
    ErrorCode code;
  } cases[] = {
      {"Loading IANA PEN Registry...\n> RAKP 2 HMAC is invalid\n"
       "Error: Unable to establish IPMI v2 / RMCP+ session\n",
       ErrorCode::unauthorized},
      {"RAKP 2 message indicates an error : unauthorized name\n"
       "Error: Unable to establish IPMI v2 / RMCP+ session\n",
       ErrorCode::unauthorized},
      {"Set Chassis Power Control to Down/Off failed: Insufficient privilege level\n",
       ErrorCode::unauthorized},
      {"Get Auth Capabilities error\nError: Unable to establish IPMI v2 / RMCP+ session\n",
       ErrorCode::unavailable},
      // What -v tells about its own attempts is no answer of the machine.
      {"Running Get VSO Capabilities my_addr 0x20\nInvalid completion code received: Invalid "
       "command\nDiscovered IPMB address 0x0\n\n    DCMI request failed because: Node busy (c0)\n",
       ErrorCode::unavailable},
      {"\n    DCMI request failed because: Invalid command (c1)\n", ErrorCode::unsupported},
      {"\n    DCMI request failed because: Power/Thermal limit out of range (84)\n",
       ErrorCode::out_of_range},
      {"Set Chassis Power Control to Soft failed: Command not supported in present state\n",
       ErrorCode::conflict},
      {"something nobody has seen\n", ErrorCode::protocol},
  };
  for (const auto& c : cases) {
    CAPTURE(c.err);
    Finished finished;
    finished.exit_code = 1;
    finished.err = c.err;
    const Error error = ipmi::error_of(finished, "ipmitool chassis power status");
    CHECK(error.code == c.code);
    CHECK(error.message.starts_with("ipmitool chassis power status: "));
    CHECK(error.server_text.find("Loading IANA") == std::string::npos);
  }
}

TEST_CASE("ipmi: an address is a host with or without a port") {
  boost::asio::io_context io;
  const auto made = [&](const std::string& address) {
    DriverConfig config;
    config.address = address;
    return make_driver(io.get_executor(), std::move(config)).has_value();
  };
  for (const char* good : {"ipmi://10.0.0.7", "ipmi://10.0.0.7:6230", "ipmi://bmc1.example.org/",
                           "ipmi://[fd00::7]", "ipmi://[fd00::7]:623"}) {
    CAPTURE(good);
    CHECK(made(good));
  }
  for (const char* bad : {"ipmi:", "ipmi:10.0.0.7", "ipmi://", "ipmi://u:p@10.0.0.7",
                          "ipmi://10.0.0.7/x", "ipmi://10.0.0.7:99999", "ipmi://a b"}) {
    CAPTURE(bad);
    CHECK_FALSE(made(bad));
  }
}

TEST_CASE("ipmi: an address that is not allowed is not spoken to, a driver without user neither") {
  boost::asio::io_context io{1};
  DriverConfig config;
  config.address = "ipmi://localhost:6230";
  config.credentials = Credentials{"admin", "x"};
  std::vector<std::string> asked;
  config.address_allowed = [&](const std::string& address) {
    asked.push_back(address);
    return false;
  };
  auto driver = make_driver(io.get_executor(), config);
  REQUIRE(driver.has_value());
  const auto state = test::run_task(io, (*driver)->state());
  REQUIRE_FALSE(state);
  CHECK(state.error().code == ErrorCode::forbidden);
  CHECK(std::find(asked.begin(), asked.end(), "127.0.0.1") != asked.end());

  config.credentials.reset();
  driver = make_driver(io.get_executor(), config);
  const auto anonymous = test::run_task(io, (*driver)->state());
  REQUIRE_FALSE(anonymous);
  CHECK(anonymous.error().message.find("credentialsSecretRef") != std::string::npos);
}

}  // namespace
}  // namespace kwatt::hardware

TEST_SUITE_END();
