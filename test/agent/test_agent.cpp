#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "agent/agent.hpp"
#include "test/agent/fake_kube_client.hpp"
#include "test/hardware/fake_machine.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::agent {
namespace {

using hardware::FakeHostFs;
using hardware::FakeMachine;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const std::string kGovernor = FakeMachine::policy_file(0, "scaling_governor");
const std::string kLimit = FakeMachine::zone_file("intel-rapl:0", "constraint_0_power_limit_uw");

// A machine, an API server and one agent after the other.
struct World {
  World() {
    FakeMachine{.meter = false}.build(sys);
    proc.put("stat", "cpu  100 0 0 900 0 0 0 0 0 0\n");
    clock.advance(minutes{1});
    start();
  }
  void start() {
    agent.emplace(AgentConfig{.node_name = "n1",
                              .boot_id = boot_id,
                              .version = "test",
                              .restore_after = minutes{10},
                              .sample_interval = seconds{1},
                              .check_interval = seconds{2},
                              .full_interval = seconds{30},
                              .report_timing = {}},
                  client, sys, proc, clock, metrics);
  }
  void run(kube::Task<void> task) {
    bool done = false;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
      done = true;
    });
    io.restart();
    io.run();
    REQUIRE(done);
  }
  void step(int times = 1) {
    for (int i = 0; i < times; ++i) {
      ticks += 100;
      proc.put("stat", "cpu  " + std::to_string(ticks / 10) + " 0 0 " +
                           std::to_string(ticks - ticks / 10) + " 0 0 0 0 0 0\n");
      run(agent->step());
      clock.advance(seconds{1});
    }
  }
  void annotate(const api::StringMap& annotations) { agent->node_seen(annotations); }
  std::string governor() const { return sys.text(kGovernor); }

  boost::asio::io_context io{1};
  ManualClock clock{TimePoint{std::chrono::hours{500'000}}};
  Metrics metrics;
  FakeHostFs sys, proc;
  FakeKubeClient client;
  std::string boot_id = "boot-1";
  std::int64_t ticks = 1000;
  std::optional<Agent> agent;
};

const api::StringMap kSlow{{"kwatt.dev/governor", "powersave"},
                           {"kwatt.dev/request", R"({"id":"r-1"})"}};
const api::StringMap kCapped{{"kwatt.dev/governor", "powersave"},
                             {"kwatt.dev/power-cap-watts", "100"}};

TEST_CASE_FIXTURE(World, "nothing is done before the Node was seen") {
  step(20);
  CHECK(sys.writes().empty());
  CHECK(client.reports.empty());
}

TEST_CASE_FIXTURE(World,
                  "the original is stored, saying what will be held, before the first write") {
  bool wrote_before = false;
  client.on_patch = [&] { wrote_before |= client.reports.empty() && !sys.writes().empty(); };
  annotate(kSlow);
  step();
  CHECK_FALSE(wrote_before);
  REQUIRE_FALSE(client.reports.empty());
  CHECK(client.reports.front().original.governor == "schedutil");
  CHECK(client.reports.front().original.exact.ends_with("held/governor"));
  CHECK(client.reports.front().converged == false);
  CHECK(governor() == "powersave\n");
  step(5);
  CHECK(client.report().converged);
  CHECK(client.report().applied_request == "r-1");
  CHECK(client.report().governor == "powersave");
}

TEST_CASE_FIXTURE(World, "a machine whose original cannot be stored is left alone") {
  SUBCASE("no NodePower") {
    client.power.reset();
  }
  SUBCASE("no API server") {
    client.failure = ErrorCode::unavailable;
  }
  annotate(kSlow);
  step(30);
  CHECK(sys.writes().empty());
  client.power = api::NodePower{};
  client.failure.reset();
  step(40);
  CHECK(governor() == "powersave\n");
}

TEST_CASE_FIXTURE(World, "a wish that changes while the original is being stored is what counts") {
  client.on_patch = [&] {
    client.on_patch = nullptr;
    agent->node_seen(api::StringMap{{"kwatt.dev/governor", "performance"}});
  };
  annotate(kSlow);
  step(2);
  CHECK(governor() == "performance\n");
  for (const std::string& write : sys.writes()) CHECK(write.find("powersave") == std::string::npos);
}

TEST_CASE_FIXTURE(World, "a removed annotation restores, and lets go") {
  annotate(kCapped);
  step(3);
  REQUIRE(sys.text(kLimit) == "100000000\n");
  annotate({});
  step(3);
  CHECK(governor() == "schedutil\n");
  CHECK(sys.text(kLimit) == "200000000\n");
  step(5);
  CHECK_FALSE(says_held(client.report().original));
  sys.clear_writes();
  sys.put(kGovernor, "conservative\n");
  step(10);
  CHECK(sys.writes().empty());
}

TEST_CASE_FIXTURE(World, "a wish that is met already holds nothing until it takes a write") {
  annotate({{"kwatt.dev/governor", "schedutil"}});
  step(6);
  CHECK(client.report().converged);
  CHECK(sys.writes().empty());
  CHECK_FALSE(says_held(client.report().original));
  sys.put(kGovernor, "performance\n");
  bool stored_first = false;
  client.on_patch = [&] {
    client.on_patch = nullptr;
    stored_first = sys.writes().empty();
  };
  step(4);
  CHECK(stored_first);
  CHECK(governor() == "schedutil\n");
  CHECK(says_held(client.report().original));
}

TEST_CASE_FIXTURE(World, "a Node that is gone asks for nothing") {
  annotate(kSlow);
  step(2);
  agent->node_seen(std::nullopt);
  step(2);
  CHECK(governor() == "schedutil\n");
}

TEST_CASE_FIXTURE(World, "a killed agent's successor restores the true original") {
  annotate(kCapped);
  step(3);
  start();  // nothing of the first agent is left but what the API server has
  SUBCASE("which is asked for the same") {
    annotate(kCapped);
    step(3);
    CHECK(governor() == "powersave\n");
  }
  SUBCASE("which is asked for nothing any more") {}
  annotate({});
  step(6);
  CHECK(governor() == "schedutil\n");
  CHECK(sys.text(kLimit) == "200000000\n");
}

TEST_CASE_FIXTURE(World, "a fresh agent raises no limit before the draw outside is measured") {
  annotate(kCapped);
  step(10);
  REQUIRE(client.report().effective_cap_watts == 100);
  const std::string lower = "60000000\n";
  sys.put(kLimit, lower);  // as an earlier life left it, while the rest was drawn elsewhere
  start();
  annotate(kCapped);
  step();
  CHECK(sys.text(kLimit) == lower);
  CHECK_FALSE(agent->converged());
  step(10);  // nothing measures the whole machine here
  CHECK(sys.text(kLimit) != lower);
  CHECK(agent->converged());
}

TEST_CASE_FIXTURE(World, "what was stored during another boot means nothing") {
  annotate(kCapped);
  step(3);
  boot_id = "boot-2";
  start();
  sys.put(kGovernor, "ondemand\n");  // the firmware and distribution of today
  annotate(kSlow);
  step(3);
  annotate({});
  step(3);
  CHECK(governor() == "ondemand\n");
}

TEST_CASE_FIXTURE(World, "no report overwrites a stored original that was not read yet") {
  annotate(kCapped);
  step(3);
  const auto stored = client.power->status.report.original;
  start();
  client.failure = ErrorCode::unavailable;
  annotate({});
  step(5);
  client.failure.reset();
  client.on_patch = [&] { CHECK(client.power->status.report.original == stored); };
  step(1);
  client.on_patch = nullptr;
  step(40);
  CHECK(governor() == "schedutil\n");
}

TEST_CASE_FIXTURE(World,
                  "without a sign of life the originals come back, even without an API server") {
  annotate(kSlow);
  step(6);
  REQUIRE(client.report().converged);
  client.failure = ErrorCode::unavailable;
  clock.advance(minutes{10});
  step(2);
  CHECK(governor() == "schedutil\n");
  client.failure.reset();
  step(40);
  CHECK_FALSE(client.report().converged);
  CHECK(client.report().errors.back() ==
        "no sign of life of the controller for 10m: original settings");
  agent->dead_man().sign_of_life(clock.monotonic());
  step(6);
  CHECK(governor() == "powersave\n");
  CHECK(client.report().converged);
}

TEST_CASE_FIXTURE(World,
                  "stopping restores at once, without the API server, and ends all writing") {
  annotate(kCapped);
  step(3);
  client.failure = ErrorCode::unavailable;
  CHECK(agent->stop_hardware());
  CHECK(governor() == "schedutil\n");
  CHECK(sys.text(kLimit) == "200000000\n");
  sys.clear_writes();
  annotate(kSlow);
  step(5);
  CHECK(sys.writes().empty());
  client.failure.reset();
  run(agent->last_report());
  CHECK(client.report().governor == "schedutil");
  CHECK_FALSE(says_held(client.report().original));
}

TEST_CASE_FIXTURE(World, "stopping says so when something cannot be restored") {
  annotate(kCapped);
  step(3);
  sys.fail_write(kLimit, EIO);
  CHECK_FALSE(agent->stop_hardware());
  run(agent->last_report());
  CHECK(says_held(client.report().original));  // the next agent will try
  CHECK(client.report().errors.size() == 1);
}

TEST_CASE_FIXTURE(World,
                  "a cap of a budget stays through loss of the controller and through a stop") {
  annotate({{"kwatt.dev/governor", "powersave"},
            {"kwatt.dev/power-cap-watts", "100"},
            {"kwatt.dev/request", R"({"id":"r-1","keepCap":true})"}});
  step(3);
  clock.advance(minutes{10});
  step(2);
  CHECK(governor() == "schedutil\n");
  CHECK(sys.text(kLimit) == "100000000\n");
  agent->stop_hardware();
  CHECK(sys.text(kLimit) == "100000000\n");
  run(agent->last_report());
  CHECK(says_held(client.report().original));
}

TEST_CASE_FIXTURE(World, "a store that fails is tried again with growing pauses") {
  sys.fail_write(kGovernor, EBUSY);
  annotate(kSlow);
  step(60);
  int tries = 0;
  for (const std::string& write : sys.writes()) tries += write.starts_with(kGovernor) ? 1 : 0;
  CHECK(tries >= 4);
  CHECK(tries <= 12);
  CHECK_FALSE(client.report().converged);
  REQUIRE_FALSE(client.report().errors.empty());
  CHECK(client.report().errors.front().starts_with("governor of policy0 to powersave"));
  CHECK(client.reports.size() < 8);
}

TEST_CASE_FIXTURE(World, "what does not stay as it was set is said and not called converged") {
  annotate(kCapped);
  step(2);
  for (int i = 0; i < 60; ++i) {
    sys.put(kLimit, "200000000\n");  // a firmware that takes everything back
    step();
  }
  CHECK_FALSE(client.report().converged);
  REQUIRE_FALSE(client.report().errors.empty());
  CHECK(client.report().errors.front() ==
        "power limit of package-0 does not stay as it was set: something else sets it");
  CHECK(client.report().requested_cap_watts == 100);
  CHECK(client.report().effective_cap_watts != 100);
  CHECK(client.reports.size() < 20);
  SUBCASE("once it stays, all is well again") {
    step(70);
    CHECK(client.report().converged);
    CHECK(client.report().errors.empty());
  }
}

TEST_CASE_FIXTURE(World, "a limit that the firmware has locked is named in the report") {
  sys.fail_write(kLimit, ENODATA);
  annotate(kCapped);
  step(6);
  REQUIRE_FALSE(client.report().errors.empty());
  CHECK(client.report().errors.front().starts_with(
      "the firmware has locked the power limit of package-0"));
  CHECK(governor() == "powersave\n");
}

TEST_CASE_FIXTURE(World, "hardware that cannot be read is reported and not written") {
  for (const int index : {0, 2}) {
    sys.fail_read(FakeMachine::policy_file(index, "scaling_max_freq"), EIO);
  }
  annotate(kSlow);
  step(6);
  CHECK(sys.writes().empty());
  REQUIRE(client.report().errors.size() == 2);
  CHECK(client.report().errors[0] == "the CPU frequency settings of this machine cannot be read");
  CHECK(client.report().errors[1].starts_with("policy0 is left out: "));
  CHECK(client.report().errors[1].ends_with("(and 1 more alike)"));
  CHECK_FALSE(client.report().converged);
}

TEST_CASE_FIXTURE(World, "what cannot be read when its lever is let go gets its own later") {
  annotate(kSlow);
  step(6);
  sys.fail_read(FakeMachine::policy_file(2, "scaling_max_freq"), EIO);
  annotate({});
  step(6);
  CHECK(governor() == "schedutil\n");
  CHECK(sys.text(FakeMachine::policy_file(2, "scaling_governor")) == "powersave\n");
  sys.fail_read(FakeMachine::policy_file(2, "scaling_max_freq"), 0);
  step(6);
  CHECK(sys.text(FakeMachine::policy_file(2, "scaling_governor")) == "schedutil\n");
}

TEST_CASE_FIXTURE(World, "readings alone are written every five minutes") {
  sys.put("class/hwmon/hwmon1/name", "power_meter\n");
  sys.put("class/hwmon/hwmon1/power1_average", "300000000\n");
  annotate({});
  step(10);
  const std::size_t before = client.reports.size();
  for (int i = 0; i < 290; ++i) {
    sys.put("class/hwmon/hwmon1/power1_average", std::to_string(300'000'000 + i * 1'000) + "\n");
    step();
  }
  CHECK(client.reports.size() == before);
  step(20);
  CHECK(client.reports.size() == before + 1);
  CHECK(client.report().watts == 300);
  CHECK(client.report().watts_source == "hwmon");
  CHECK(client.report().cpu_utilization_percent == 5);  // 10 % busy at half the frequency
}

TEST_CASE_FIXTURE(World, "a NodePower that was deleted and made again gets a whole report") {
  annotate({});
  step(6);
  client.power.reset();
  clock.advance(minutes{5});
  step(2);
  client.power = api::NodePower{};
  step(40);
  CHECK(client.power->status.report.boot_id == "boot-1");
}

}  // namespace
}  // namespace kwatt::agent
