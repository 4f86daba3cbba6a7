#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "hardware/command.hpp"
#include "test/hardware/print_result.hpp"
#include "test/support/folder.hpp"
#include "test/support/run_task.hpp"

TEST_SUITE_BEGIN("command");

namespace kwatt::hardware {
namespace {

struct Machine {
  test::Folder folder;
  boost::asio::io_context io{1};

  std::unique_ptr<PowerDriver> driver(const std::string& script) {
    folder.write("bmc", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder.path("bmc"), std::filesystem::perms::owner_all);
    DriverConfig config;
    config.address = "command:pdu/outlet/3";
    config.node = "node1";
    config.timeout = std::chrono::milliseconds{500};
    config.credentials = Credentials{"admin", "s3cret"};
    config.commands["pdu"] = folder.path("bmc");
    auto made = make_driver(io.get_executor(), std::move(config));
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(*made);
  }
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return test::run_task(io, std::move(task));
  }
  std::string log() const {
    std::ifstream file(folder.path("log"));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

TEST_CASE_FIXTURE(Machine, "command: each verb is one run of the program, with the node's name") {
  auto driver = this->driver("echo \"$*\" >> " + folder.path("log") + R"SH(
case $1 in state) echo on;; power) echo 182.5;; esac)SH");
  CHECK(*run(driver->state()) == MachinePower::on);
  CHECK(run(driver->reset(Reset::on, "op-1")));
  CHECK(run(driver->reset(Reset::graceful_shutdown, "op-1")));
  CHECK(run(driver->reset(Reset::force_off, "op-1")));
  CHECK(*run(driver->power_reading()) == std::optional{Milliwatts{182'500}});
  CHECK(run(driver->set_power_limit(Milliwatts{250'900}, "op-1")));
  CHECK(run(driver->set_power_limit(std::nullopt, "op-1")));
  CHECK(log() ==
        "state node1\non node1\nsoft-off node1\noff node1\npower node1\nlimit node1 250\n"
        "unlimit node1\n");
}

TEST_CASE_FIXTURE(Machine, "command: address, operation and password go by the environment only") {
  auto driver = this->driver(
      "echo \"$KWATT_ADDRESS|$KWATT_OPERATION_ID|$KWATT_USER|$KWATT_PASSWORD\" > " +
      folder.path("log") + "; tr '\\0' ' ' < /proc/$$/cmdline >> " + folder.path("log"));
  CHECK(run(driver->reset(Reset::on, "op-9")));
  CHECK(log().starts_with("command:pdu/outlet/3|op-9|admin|s3cret\n"));
  CHECK(log().find("s3cret", log().find('\n')) == std::string::npos);
}

TEST_CASE_FIXTURE(Machine, "command: what a program does wrong is told apart") {
  const struct {
    const char* name;
    const char* script;
    ErrorCode code;
    const char* says;
  } cases[] = {
      {"slow", "sleep 30", ErrorCode::timeout, "did not end within 500ms"},
      {"crash", "kill -SEGV $$", ErrorCode::unavailable, "exit code 139"},
      {"failure with words", "echo the PDU is offline >&2; exit 1", ErrorCode::unavailable,
       "the PDU is offline"},
      {"not offered", "exit 3", ErrorCode::unsupported, "not offered"},
      {"wrong password", "exit 4", ErrorCode::unauthorized, "credentials are refused"},
      {"out of range", "exit 5", ErrorCode::out_of_range, "outside"},
      {"garbage", "echo '<html>login</html>'", ErrorCode::protocol, "<html>login"},
      {"silence", "true", ErrorCode::protocol, "is not on, off"},
      {"two words", "echo on off", ErrorCode::protocol, "is not on, off"},
      {"chatter", "head -c 100000 /dev/zero", ErrorCode::protocol, "more than 4096 bytes"},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    const auto state = run(driver(c.script)->state());
    REQUIRE_FALSE(state);
    CHECK(state.error().code == c.code);
    CHECK(state.error().text().find(c.says) != std::string::npos);
    CHECK(state.error().text().find("s3cret") == std::string::npos);
  }
}

TEST_CASE("command: a lying meter is not believed") {
  const struct {
    const char* out;
    std::optional<std::int64_t> milliwatts;  // nullopt: refused
  } cases[] = {{"0\n", 0},
               {" 99.25 \n", 99'250},
               {"-1", std::nullopt},
               {"nan", std::nullopt},
               {"inf", std::nullopt},
               {"4294967295", std::nullopt},
               {"182 W", std::nullopt},
               {"1e3", std::nullopt},
               {"", std::nullopt}};
  for (const auto& c : cases) {
    CAPTURE(c.out);
    const auto reading = parse_command_power(c.out);
    REQUIRE(reading.has_value() == c.milliwatts.has_value());
    if (reading) {
      CHECK((*reading)->count() == *c.milliwatts);
    } else {
      CHECK(reading.error().code == ErrorCode::protocol);
    }
  }
  const auto none = parse_command_power("none\n");
  REQUIRE(none);
  CHECK_FALSE(none->has_value());
}

TEST_CASE("command: every word of the contract, and no other, is a state") {
  const struct {
    const char* out;
    MachinePower power;
  } cases[] = {{"on\n", MachinePower::on},
               {"off", MachinePower::off},
               {"powering-on", MachinePower::powering_on},
               {"powering-off", MachinePower::powering_off},
               {"unknown", MachinePower::unknown}};
  for (const auto& c : cases) {
    CAPTURE(c.out);
    const auto power = parse_command_state(c.out);
    REQUIRE(power);
    CHECK(*power == c.power);
  }
  CHECK_FALSE(parse_command_state("ON"));
}

TEST_CASE("command: an object chooses a program by name and cannot bring one") {
  boost::asio::io_context io;
  for (const std::string address :
       {"command:", "command:other", "command:/bin/sh", "command://pdu", "command:../pdu"}) {
    CAPTURE(address);
    DriverConfig config;
    config.address = address;
    config.commands["pdu"] = "/bin/true";
    const auto made = make_driver(io.get_executor(), std::move(config));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace kwatt::hardware

TEST_SUITE_END();
