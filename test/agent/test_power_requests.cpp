#include <doctest/doctest.h>

#include "agent/power_requests.hpp"
#include "test/support/run_task.hpp"

TEST_SUITE_BEGIN("wol");

namespace kwatt::agent {
namespace {

using hardware::Finished;
using hardware::MacAddress;
using hardware::Program;
using hardware::WakeNote;
using std::chrono::minutes;
using std::chrono::seconds;

const MacAddress kMac{{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};
const TimePoint kNow = *parse_rfc3339("2026-11-20T12:00:00Z");

WakeNote note(const std::string& id, TimePoint time = kNow) {
  return {id, "node7", kMac, time};
}
api::StringMap wake(const std::vector<WakeNote>& notes) {
  return {{"kwatt.dev/wake-lan", hardware::format_wake_notes(notes)}};
}
api::StringMap off(const std::string& boot) {
  api::StringMap annotations{{"kwatt.dev/power-state", "off"}};
  if (!boot.empty()) annotations.set("kwatt.dev/power-off-boot", boot);
  return annotations;
}

struct Bench {
  ManualClock clock{kNow};
  Metrics metrics;
  boost::asio::io_context io{1};
  int sent = 0;
  std::vector<std::string> ran;
  Result<hardware::Sent> send_answer = hardware::Sent{"eth0 udp"};
  int exit_code = 0;
  std::vector<std::string> command{"/sbin/poweroff", "-h"};
  std::unique_ptr<PowerRequestRunner> runner_;

  PowerRequestRunner& start() {
    clock.advance(seconds{1});
    PowerRequestsConfig config;
    config.boot_id = "boot-1";
    config.power_off_command = command;
    runner_ = std::make_unique<PowerRequestRunner>(
        config, clock, metrics,
        [this](const MacAddress& mac) {
          CHECK(mac == kMac);
          if (send_answer) ++sent;
          return send_answer;
        },
        [this](Program program) { return run(std::move(program)); });
    return *runner_;
  }
  hardware::Task<Result<Finished>> run(Program program) {
    ran.push_back(program.path + " " + program.arguments.at(0));
    Finished finished;
    finished.exit_code = exit_code;
    finished.err = "not allowed";
    co_return finished;
  }
  void step(bool controller_lost = false) { test::run_task(io, runner_->step(controller_lost)); }
};

TEST_CASE_FIXTURE(Bench, "wol: each id is sent once, however often it is seen") {
  auto& runner = start();
  runner.node_seen(wake({note("op-1/1")}));
  step();
  step();
  runner.node_seen(wake({note("op-1/1")}));
  step();
  CHECK(sent == 1);
  runner.node_seen(wake({note("op-1/1"), note("op-2/1")}));
  step();
  CHECK(sent == 2);
  runner.node_seen(wake({note("op-1/2"), note("op-2/1")}));
  step();
  CHECK(sent == 3);
  runner.node_seen({});
  step();
  CHECK(sent == 3);
}

TEST_CASE_FIXTURE(Bench, "wol: a note left over from long ago wakes nobody") {
  start().node_seen(wake({note("op-1/1", kNow - minutes{6}), note("op-2/1", kNow + minutes{6})}));
  step();
  CHECK(sent == 0);
}

TEST_CASE_FIXTURE(Bench, "wol: what could not be sent is told and tried again") {
  send_answer = fail(ErrorCode::unsupported, "no network interface can broadcast");
  auto& runner = start();
  runner.node_seen(wake({note("op-1/1")}));
  step();
  REQUIRE(runner.errors().size() == 1);
  CHECK(runner.errors()[0] == "waking node7: no network interface can broadcast");
  send_answer = hardware::Sent{"eth0 udp"};
  step();
  CHECK(sent == 1);
  CHECK(runner.errors().empty());
}

TEST_CASE_FIXTURE(Bench, "wol: text that is no note is told in the report") {
  auto& runner = start();
  runner.node_seen({{"kwatt.dev/wake-lan", "please wake node7"}});
  step();
  CHECK(sent == 0);
  REQUIRE(runner.errors().size() == 1);
  CHECK(runner.errors()[0].find("kwatt.dev/wake-lan") == 0);
}

TEST_CASE_FIXTURE(Bench, "power off: the command runs once for this boot") {
  auto& runner = start();
  runner.node_seen(off("boot-1"));
  step();
  step();
  CHECK(ran == std::vector<std::string>{"/sbin/poweroff -h"});
  CHECK(runner.errors().empty());
}

TEST_CASE_FIXTURE(Bench, "power off: what must not switch a machine off") {
  struct Case {
    const char* name;
    api::StringMap annotations;
    bool controller_lost, told;
  };
  const Case cases[] = {
      {"a note of an earlier boot", off("boot-0"), false, false},
      {"set by hand, perhaps over running pods", off(""), false, true},
      {"another word", {{"kwatt.dev/power-state", "reboot"}}, false, true},
      {"asked to be on", {{"kwatt.dev/power-state", "on"}}, false, false},
      {"the controller is lost", off("boot-1"), true, false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    auto& runner = start();
    runner.node_seen(c.annotations);
    step(c.controller_lost);
    CHECK(ran.empty());
    CHECK(runner.errors().empty() != c.told);
  }
}

TEST_CASE_FIXTURE(Bench, "power off: a command that fails is told, and tried again with a pause") {
  exit_code = 1;
  auto& runner = start();
  runner.node_seen(off("boot-1"));
  step();
  step();
  CHECK(ran.size() == 1);
  REQUIRE(runner.errors().size() == 1);
  CHECK(runner.errors()[0] == "--power-off-command: exit code 1: not allowed");
  clock.advance(seconds{31});
  exit_code = 0;
  step();
  CHECK(ran.size() == 2);
  CHECK(runner.errors().empty());
}

TEST_CASE_FIXTURE(Bench, "power off: without a command it says so") {
  command.clear();
  auto& runner = start();
  runner.node_seen(off("boot-1"));
  step();
  REQUIRE(runner.errors().size() == 1);
  CHECK(runner.errors()[0].find("no --power-off-command") != std::string::npos);
  runner.node_seen({});
  CHECK(runner.errors().empty());
}

}  // namespace
}  // namespace kwatt::agent

TEST_SUITE_END();
