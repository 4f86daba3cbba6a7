#include <doctest/doctest.h>

#include "agent/report.hpp"
#include "test/hardware/fake_machine.hpp"

namespace kwatt::agent {
namespace {

using hardware::FakeHostFs;
using hardware::FakeMachine;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

api::AgentReport example() {
  api::AgentReport report;
  report.boot_id = "b";
  report.time = TimePoint{seconds{1000}};
  report.watts = 150;
  report.governor = "powersave";
  report.requested_cap_watts = report.effective_cap_watts = 200;
  report.cap_min_watts = 100;
  report.cap_max_watts = 400;
  report.converged = true;
  return report;
}

TEST_CASE("a report says what the machine is, what was asked and what is in force") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  const MachineState state{*hardware::read_cpufreq(fs), *hardware::read_zones(fs), watts(50)};
  const Original original = capture(state, "boot-1");
  DesiredSettings desired;
  desired.power_cap = watts(150);
  telemetry::AgentSample sample;
  sample.power = Milliwatts{150'600};
  sample.source = telemetry::PowerSource::hwmon;
  sample.utilization = Permille{337};
  sample.frequency = Megahertz{1600};
  const api::AgentReport report = build_report({.boot_id = "boot-1",
                                                .agent_version = "1.2.3",
                                                .now = TimePoint{seconds{1000}},
                                                .state = state,
                                                .desired = desired,
                                                .original = original,
                                                .held = {},
                                                .applied_request = "r-1",
                                                .converged = false,
                                                .errors = {"something"},
                                                .sample = sample});
  CHECK(report.boot_id == "boot-1");
  CHECK(report.agent_version == "1.2.3");
  CHECK(report.watts == 151);
  CHECK(report.watts_source == "hwmon");
  CHECK(report.cpu_utilization_percent == 34);
  CHECK(report.governor == "schedutil");
  CHECK(report.max_mhz == 3200);
  CHECK(report.current_mhz == 1600);
  CHECK(report.applied_request == "r-1");
  CHECK(report.requested_cap_watts == 150);
  CHECK(report.effective_cap_watts == 250);  // not applied yet: 200 W of the package, 50 outside
  CHECK_FALSE(report.converged);
  CHECK(report.original.governor == "schedutil");
  CHECK(report.original.cap_watts == 200);
  CHECK(report.errors == std::vector<std::string>{"something"});
  CHECK(report.available_governors.size() == 6);
  CHECK(report.hardware_min_mhz == 800);
  CHECK(report.hardware_max_mhz == 3200);
  CHECK(report.cap_min_watts == 70);
  CHECK(report.cap_max_watts == 250);
}

TEST_CASE("what somebody acts on is important, readings alone are not") {
  struct Case {
    const char* name;
    void (*change)(api::AgentReport&);
    Difference difference;
  };
  const Case cases[] = {
      {"nothing", [](api::AgentReport&) {}, Difference::none},
      {"time", [](api::AgentReport& r) { *r.time += seconds{1}; }, Difference::readings},
      {"watts", [](api::AgentReport& r) { r.watts = 300; }, Difference::readings},
      {"utilization", [](api::AgentReport& r) { r.cpu_utilization_percent = 99; },
       Difference::readings},
      {"present frequency", [](api::AgentReport& r) { r.current_mhz = 1; }, Difference::readings},
      {"the range of caps follows the draw", [](api::AgentReport& r) { r.cap_max_watts = 404; },
       Difference::readings},
      {"the range of caps moved", [](api::AgentReport& r) { r.cap_max_watts = 450; },
       Difference::ranges},
      {"effective cap", [](api::AgentReport& r) { r.effective_cap_watts = 0; },
       Difference::important},
      {"requested cap", [](api::AgentReport& r) { r.requested_cap_watts = 201; },
       Difference::important},
      {"governor", [](api::AgentReport& r) { r.governor = "x"; }, Difference::important},
      {"convergence", [](api::AgentReport& r) { r.converged = false; }, Difference::important},
      {"applied request", [](api::AgentReport& r) { r.applied_request = "r"; },
       Difference::important},
      {"boot", [](api::AgentReport& r) { r.boot_id = "c"; }, Difference::important},
      {"a held original",
       [](api::AgentReport& r) { r.original.exact = "zone/intel-rapl:0/1/1 held/cap"; },
       Difference::important},
      {"an original that nobody holds",
       [](api::AgentReport& r) { r.original.exact = "zone/intel-rapl:0/1/1"; },
       Difference::readings},
      {"an error", [](api::AgentReport& r) { r.errors = {"cap 9 W"}; }, Difference::important},
      {"the source of watts", [](api::AgentReport& r) { r.watts_source = "rapl"; },
       Difference::important},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    api::AgentReport next = example();
    c.change(next);
    CHECK(compare(example(), next) == c.difference);
  }
}

TEST_CASE("numbers in a sentence that move with the draw are no news") {
  api::AgentReport before = example(), after = example();
  before.errors = {"power cap 900 W is outside the hardware's 95 to 405 W"};
  after.errors = {"power cap 900 W is outside the hardware's 96 to 406 W"};
  CHECK(compare(before, after) == Difference::readings);
}

TEST_CASE("important news goes at once but once a second, readings every five minutes") {
  CHECK_FALSE(worth_writing(Difference::ranges, seconds{59}, ReportTiming{}));
  CHECK(worth_writing(Difference::ranges, seconds{60}, ReportTiming{}));
  const ReportTiming timing;
  CHECK_FALSE(worth_writing(Difference::none, minutes{60}, timing));
  CHECK_FALSE(worth_writing(Difference::readings, minutes{5} - seconds{1}, timing));
  CHECK(worth_writing(Difference::readings, minutes{5}, timing));
  CHECK_FALSE(worth_writing(Difference::important, milliseconds{999}, timing));
  CHECK(worth_writing(Difference::important, seconds{1}, timing));
}

}  // namespace
}  // namespace kwatt::agent
