// The agent on a machine whose files follow the kernel's rules.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "agent/agent.hpp"
#include "test/agent/fake_kube_client.hpp"
#include "test/agent/kernel_fs.hpp"
#include "test/hardware/fake_host_fs.hpp"
#include "test/hardware/print_result.hpp"

TEST_SUITE_BEGIN("agent-sysfs");

namespace kwatt::agent {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string policy(int index, const std::string& file) {
  return "devices/system/cpu/cpufreq/policy" + std::to_string(index) + "/" + file;
}
std::string online(int cpu) {
  return "devices/system/cpu/cpu" + std::to_string(cpu) + "/online";
}
const std::string kLimit0 = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw";
const std::string kLimit1 = "class/powercap/intel-rapl:1/constraint_0_power_limit_uw";

struct Site {
  explicit Site(kernel_rules::CpuSpec cpu = {}, kernel_rules::PowerSpec power = {})
      : sys({std::move(cpu), power}) {
    proc.put("stat", "cpu  100 0 0 900 0 0 0 0 0 0\n");
    clock.advance(minutes{1});
    start();
  }
  void start() {
    agent.emplace(AgentConfig{.node_name = "n1",
                              .boot_id = "boot-1",
                              .version = "test",
                              .restore_after = minutes{10},
                              .sample_interval = seconds{1},
                              .check_interval = seconds{2},
                              .full_interval = seconds{30},
                              .report_timing = {}},
                  client, sys, proc, clock, metrics);
    agent->dead_man().sign_of_life(clock.monotonic());
  }
  void step(int times = 1) {
    for (int i = 0; i < times; ++i) {
      ticks += 100;
      proc.put("stat", "cpu  " + std::to_string(ticks / 4) + " 0 0 " +
                           std::to_string(ticks - ticks / 4) + " 0 0 0 0 0 0\n");
      agent->dead_man().sign_of_life(clock.monotonic());
      bool done = false;
      boost::asio::co_spawn(io, agent->step(), [&](std::exception_ptr failure) {
        if (failure) std::rethrow_exception(failure);
        done = true;
      });
      io.restart();
      io.run();
      REQUIRE(done);
      clock.advance(seconds{1});
      sys.seconds += 1;
    }
  }
  void ask(const api::StringMap& annotations, int steps = 6) {
    agent->node_seen(annotations);
    step(steps);
  }
  const api::AgentReport& report() const { return client.report(); }
  std::string errors() const {
    std::string all;
    for (const std::string& error : report().errors) all += error + "\n";
    return all;
  }
  std::string governor(int index = 0) const { return sys.text(policy(index, "scaling_governor")); }
  std::string maximum(int index = 0) const { return sys.text(policy(index, "scaling_max_freq")); }

  boost::asio::io_context io{1};
  ManualClock clock{TimePoint{std::chrono::hours{500'000}}};
  Metrics metrics;
  KernelFs sys;
  hardware::FakeHostFs proc;
  FakeKubeClient client;
  std::int64_t ticks = 1000;
  std::optional<Agent> agent;
};

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("every driver takes what is asked and gets back what it had") {
  struct Case {
    const char* driver;
    const char* governor;
    const char* maximum;  // of 1500 MHz asked
    const char* epp;      // "": none
  };
  const Case cases[] = {{"acpi-cpufreq", "powersave", "1400000", ""},
                        {"intel_pstate", "powersave", "1500000", "power"},
                        {"intel_cpufreq", "powersave", "1500000", "balance_power"},
                        {"amd-pstate", "ondemand", "1500000", ""},
                        {"amd-pstate-epp", "powersave", "1500000", "power"}};
  for (const Case& c : cases) {
    CAPTURE(c.driver);
    Site site({.driver = c.driver, .packages = 2});
    api::StringMap wish{{"kwatt.dev/governor", c.governor},
                        {"kwatt.dev/max-frequency-mhz", "1500"},
                        {"kwatt.dev/power-cap-watts", "200"},
                        {"kwatt.dev/request", R"({"id":"r-1"})"}};
    if (*c.epp != '\0') wish.set("kwatt.dev/epp", c.epp);
    const std::string before = site.governor(3);
    site.ask(wish);
    CHECK(site.governor(3) == c.governor);
    CHECK(site.maximum(3) == c.maximum);
    CHECK(site.sys.text(kLimit1) == "100000000");
    if (*c.epp != '\0') CHECK(site.sys.text(policy(3, "energy_performance_preference")) == c.epp);
    CHECK(site.errors() == "");
    CHECK(site.report().converged);
    CHECK(site.report().effective_cap_watts == 200);
    const std::size_t stores = site.sys.stores.size();
    site.step(60);
    CHECK(site.sys.stores.size() == stores);
    site.ask({});
    CHECK(site.governor(3) == before);
    CHECK(site.sys.text(kLimit1) == "165000000");
    if (*c.epp != '\0') {
      CHECK(site.sys.text(policy(3, "energy_performance_preference")) == "balance_performance");
    }
    CHECK_FALSE(site.agent->held()->any());
  }
}

TEST_CASE(
    "a preference under the performance governor is refused only where the driver forces it") {
  for (const char* driver : {"intel_pstate", "amd-pstate-epp", "intel_cpufreq"}) {
    CAPTURE(driver);
    Site site({.driver = driver});
    site.ask({{"kwatt.dev/governor", "performance"}, {"kwatt.dev/epp", "power"}});
    const bool takes = std::string(driver) == "intel_cpufreq";
    CHECK(site.report().converged == takes);
    CHECK(site.sys.text(policy(1, "energy_performance_preference")) ==
          (takes ? "power" : "performance"));
    if (!takes) says(site.errors(), "cannot be had under the performance governor");
    CHECK(site.sys.stores_to("energy_performance_preference") == (takes ? 4 : 0));
  }
}

TEST_CASE("one policy under the performance governor is enough to refuse a preference for all") {
  Site site({.driver = "intel_pstate"});
  site.sys.by_hand(policy(2, "scaling_governor"), "performance");
  site.ask({{"kwatt.dev/epp", "power"}});
  says(site.errors(), "cannot be had under the performance governor");
  CHECK(site.sys.text(policy(0, "energy_performance_preference")) == "balance_performance");
}

TEST_CASE("a number that the driver does not take as a preference is reported in its own words") {
  Site site({.driver = "amd-pstate-epp"});
  site.ask({{"kwatt.dev/epp", "100"}});
  CHECK_FALSE(site.report().converged);
  says(site.errors(), "energy performance preference of policy0 to 100");
  says(site.errors(), "Invalid argument) (and 3 more alike)");
}

TEST_CASE("a preference given as a number is stored once, whatever the kernel calls it") {
  Site site({.driver = "intel_pstate"});
  const std::string file = policy(3, "energy_performance_preference");
  for (const auto& [number, shown] : {std::pair{"100", "100"}, std::pair{"192", "balance_power"},
                                      std::pair{"0", "performance"}}) {
    CAPTURE(number);
    site.sys.stores.clear();
    site.ask({{"kwatt.dev/epp", number}}, 20);
    CHECK(site.sys.text(file) == shown);
    CHECK(site.sys.stores.size() == 4);
    CHECK(site.report().converged);
  }
  site.sys.by_hand(file, "power");
  site.step(5);
  CHECK(site.sys.text(file) == "performance");
  site.ask({});
  CHECK(site.sys.text(file) == "balance_performance");
}

TEST_CASE(
    "what the kernel clamps is reported with what was asked, what is in force and the range") {
  SUBCASE("a frequency above the one without turbo") {
    Site site({.driver = "intel_pstate"});
    site.sys.by_hand("devices/system/cpu/intel_pstate/no_turbo", "1");
    site.ask({{"kwatt.dev/max-frequency-mhz", "2000"}});
    CHECK(site.report().converged);
    site.ask({{"kwatt.dev/max-frequency-mhz", "3700"}});
    CHECK_FALSE(site.report().converged);
    CHECK(site.report().max_mhz == 3200);
    says(site.errors(), "wrote 3700000 but 3200000 is in force");
    says(site.errors(), "the hardware's range is 800 to 3800 MHz (and 3 more alike)");
  }
  SUBCASE("a percentage that somebody set in passive mode") {
    Site site({.driver = "intel_cpufreq"});
    site.sys.by_hand("devices/system/cpu/intel_pstate/max_perf_pct", "50");
    site.ask({{"kwatt.dev/max-frequency-mhz", "3000"}});
    CHECK(site.report().max_mhz == 1900);
    says(site.errors(), "wrote 3000000 but 1900000 is in force");
  }
  SUBCASE("a limit that the firmware keeps lower") {
    Site site;
    REQUIRE(site.sys.command("clamp-rapl 90000000"));
    site.ask({{"kwatt.dev/power-cap-watts", "120"}});
    CHECK_FALSE(site.report().converged);
    CHECK(site.report().requested_cap_watts == 120);
    CHECK(site.report().effective_cap_watts == 90);
    says(site.errors(), "wrote 120000000 but 90000000 is in force; caps of 17 to 165 W");
  }
}

TEST_CASE("a limit is rounded to the hardware's unit and that is good enough") {
  Site site({.packages = 2}, {.psys = true});
  site.ask({{"kwatt.dev/power-cap-watts", "201"}}, 30);
  CHECK(site.report().converged);
  CHECK(site.report().effective_cap_watts == 201);
  // psys says 165 W, of which 120 W are the packages': 45 W are outside, 78 W are left for each.
  CHECK(site.sys.text(kLimit0) == "78000000");
}

TEST_CASE("a limit that the BIOS has locked is said to be, and is not fought for") {
  Site site;
  REQUIRE(site.sys.command("lock-rapl 1"));
  site.ask({{"kwatt.dev/power-cap-watts", "100"}, {"kwatt.dev/governor", "powersave"}}, 300);
  says(site.errors(), "the firmware has locked the power limit of package-0");
  CHECK(site.report().requested_cap_watts == 100);
  CHECK(site.report().effective_cap_watts == 165);
  CHECK_FALSE(site.report().converged);
  CHECK(site.governor() == "powersave");
  CHECK(site.sys.stores_to("constraint_0_power_limit_uw") < 15);
}

TEST_CASE("values that others set again and again are set again ever more rarely") {
  Site site;
  site.ask({{"kwatt.dev/governor", "powersave"}});
  REQUIRE(site.report().converged);
  site.sys.stores.clear();
  for (int second = 0; second < 600; ++second) {
    site.sys.by_hand(policy(0, "scaling_governor"), "performance");
    site.step();
  }
  CHECK(site.sys.stores_to("policy0/scaling_governor") - 600 < 25);
  CHECK_FALSE(site.report().converged);
  says(site.errors(), "governor of policy0 does not stay as it was set");
  site.step(200);
  CHECK(site.governor() == "powersave");
  CHECK(site.report().converged);
  CHECK(site.errors() == "");
}

TEST_CASE(
    "a CPU that comes online while its lever is held gets the wish, and its own settings back") {
  Site site;
  site.sys.by_hand(online(3), "0");
  site.sys.by_hand(policy(2, "scaling_governor"), "ondemand");
  site.ask({{"kwatt.dev/governor", "powersave"}});
  CHECK(site.report().converged);
  CHECK(site.report().original.exact.find("cpu/0-1/schedutil") != std::string::npos);
  std::optional<std::string> when_stored;  // the governor at the first report from here on
  site.client.on_patch = [&] {
    if (!when_stored) when_stored = site.governor(3);
  };
  site.sys.by_hand(online(3), "1");
  site.sys.by_hand(policy(3, "scaling_governor"), "conservative");
  const auto reports = site.client.reports.size();
  site.step(3);
  CHECK(site.governor(3) == "powersave");
  REQUIRE(site.client.reports.size() > reports);
  says(site.client.reports[reports].original.exact, "cpu/3/conservative");
  CHECK(when_stored.value_or("") == "conservative");
  site.client.on_patch = nullptr;
  site.ask({});
  CHECK(site.governor(2) == "ondemand");
  CHECK(site.governor(3) == "conservative");
}

TEST_CASE("a CPU that is offline when a lever is let go gets its settings when it comes back") {
  Site site({.cpus = 4, .cpus_per_policy = 2});
  site.ask({{"kwatt.dev/governor", "powersave"}, {"kwatt.dev/max-frequency-mhz", "1200"}});
  for (const int cpu : {2, 3}) site.sys.by_hand(online(cpu), "0");
  site.step(5);
  CHECK(site.report().converged);
  site.ask({});
  CHECK(site.governor() == "schedutil");
  says(site.report().original.exact, "owed/2");
  CHECK(site.report().converged);
  SUBCASE("to the same agent") {}
  SUBCASE("to the one after a crash") {
    site.start();
    site.agent->node_seen(api::StringMap{});
  }
  // What people set meanwhile elsewhere is theirs.
  site.sys.by_hand(policy(0, "scaling_governor"), "conservative");
  site.step(5);
  CHECK(site.governor() == "conservative");
  site.sys.by_hand(online(2), "1");
  CHECK(site.governor(2) == "powersave");
  site.step(5);
  CHECK(site.governor(2) == "schedutil");
  CHECK(site.maximum(2) == "3200000");
  CHECK(site.governor() == "conservative");
  site.step(10);
  CHECK_FALSE(site.agent->held()->any());
  site.sys.by_hand(policy(2, "scaling_governor"), "performance");
  site.step(10);
  CHECK(site.governor(2) == "performance");
}

TEST_CASE("old kernels answer EINVAL where new ones answer EBUSY") {
  for (const int error : {EBUSY, EINVAL}) {
    CAPTURE(error);
    Site site({.inactive_error = error});
    site.sys.by_hand(online(1), "0");
    site.ask({{"kwatt.dev/governor", "powersave"}});
    CHECK(site.report().converged);
    CHECK(site.errors() == "");
    CHECK(site.sys.stores_to("policy1/scaling_governor") == 0);
  }
}

TEST_CASE("a package that goes offline takes its zone along, and is owed its limit") {
  Site site({.packages = 2}, {.dram = true});
  site.ask({{"kwatt.dev/power-cap-watts", "150"}});
  CHECK(site.sys.text(kLimit1) == "75000000");
  for (const int cpu : {2, 3}) site.sys.by_hand(online(cpu), "0");
  site.step(6);
  CHECK(site.errors() == "");
  CHECK(site.sys.text(kLimit0) == "150000000");
  site.ask({});
  CHECK(site.sys.text(kLimit0) == "165000000");
  says(site.report().original.exact, "owed-zone/intel-rapl:1");
  for (const int cpu : {2, 3}) site.sys.by_hand(online(cpu), "1");
  CHECK(site.sys.text(kLimit1) == "75000000");
  site.step(6);
  CHECK(site.sys.text(kLimit1) == "165000000");
  CHECK_FALSE(site.agent->held()->any());
}

TEST_CASE("a removed CPU does not disturb the others") {
  Site site;
  site.ask({{"kwatt.dev/governor", "powersave"}});
  REQUIRE(site.sys.command("unplug 3"));
  site.step(6);
  CHECK(site.report().converged);
  CHECK(site.errors() == "");
  REQUIRE(site.sys.command("plug 3"));
  CHECK(site.governor(3) == "schedutil");
  site.step(6);
  CHECK(site.governor(3) == "powersave");
}

TEST_CASE("a policy that lacks a file is left alone and named, the others are set") {
  Site site;
  site.sys.command("hide " + policy(2, "scaling_min_freq"));
  site.ask({{"kwatt.dev/governor", "powersave"}});
  CHECK(site.governor(0) == "powersave");
  CHECK(site.governor(2) == "schedutil");
  CHECK_FALSE(site.report().converged);
  says(site.errors(), "policy2 is left out");
  site.sys.command("unhide " + policy(2, "scaling_min_freq"));
  site.step(6);
  CHECK(site.governor(2) == "powersave");
  CHECK(site.report().converged);
}

TEST_CASE("a store that is not permitted says where to look") {
  Site site;
  for (int i = 0; i < 4; ++i) site.sys.command("refuse " + policy(i, "scaling_governor") + " 13");
  site.ask({{"kwatt.dev/governor", "powersave"}});
  CHECK_FALSE(site.report().converged);
  says(site.errors(), "Permission denied); is the host's /sys mounted for writing? (and 3 more");
}

TEST_CASE("a driver that changes its mode is set anew, and what it does not know any more stays") {
  Site site({.driver = "intel_cpufreq"});
  site.ask({{"kwatt.dev/governor", "powersave"}});
  REQUIRE(site.governor() == "powersave");
  site.sys.by_hand("devices/system/cpu/intel_pstate/status", "active");
  site.step(6);
  CHECK(site.report().converged);
  site.ask({{"kwatt.dev/governor", "performance"}});
  CHECK(site.governor() == "performance");
  site.ask({});  // schedutil was the original: the driver has it no more
  CHECK(site.governor() == "performance");
  CHECK_FALSE(site.agent->held()->any());
  site.sys.by_hand("devices/system/cpu/intel_pstate/status", "off");
  site.ask({{"kwatt.dev/governor", "powersave"}});
  says(site.errors(), "no CPU frequency scaling");
}

TEST_CASE("the duplicate of a package is neither written to nor counted") {
  Site site({.packages = 1}, {.dram = true, .psys = false, .mmio = true});
  site.ask({{"kwatt.dev/power-cap-watts", "100"}}, 10);
  CHECK(site.sys.text(kLimit0) == "100000000");
  CHECK(site.sys.stores_to("intel-rapl-mmio:0/constraint_0_power_limit_uw") == 0);
  CHECK(site.report().watts == 65);  // 60 of the package and 5 of its memory
}

TEST_CASE("a counter that wraps is no jump, and a whole machine is not counted twice") {
  Site site({.packages = 2}, {.dram = true, .psys = true});
  std::vector<std::int64_t> drawn;
  site.agent->on_sample([&](const telemetry::AgentSample& sample) {
    if (sample.power) drawn.push_back(sample.power->count() / 1000);
    if (sample.power) CHECK((sample.source == telemetry::PowerSource::rapl_psys));
    CHECK(sample.milli_celsius == 45'000);
  });
  site.ask({}, 4);
  // Six seconds before the wrap; the jump by hand itself is dropped, and the sample after it.
  REQUIRE(site.sys.command("energy intel-rapl:2 261153328850"));
  site.step(3);
  drawn.clear();
  site.step(10);
  CHECK(drawn.size() == 10);
  for (const std::int64_t each : drawn) {
    CHECK(each >= 164);
    CHECK(each <= 166);
  }
}

TEST_CASE("uncore frequencies that nobody asks for are left alone") {
  Site site({.driver = "intel_pstate"}, {.uncore = true});
  site.ask({{"kwatt.dev/governor", "performance"}, {"kwatt.dev/power-cap-watts", "100"}});
  site.ask({});
  CHECK(site.sys.stores_to("max_freq_khz") == 0);
  CHECK(site.sys.stores_to("min_freq_khz") == 0);
  CHECK(site.report().max_uncore_mhz == 2400);
}

TEST_CASE("a limit of the uncore frequency reaches each die and goes with its annotation") {
  const auto die = [](int package, const std::string& file) {
    return "devices/system/cpu/intel_uncore_frequency/package_0" + std::to_string(package) +
           "_die_00/" + file;
  };
  Site site({.packages = 2}, {.uncore = true});
  site.sys.by_hand(die(1, "min_freq_khz"), "1800000");
  site.ask({{"kwatt.dev/max-uncore-mhz", "1650"}});
  for (const int package : {0, 1}) CHECK(site.sys.text(die(package, "max_freq_khz")) == "1600000");
  CHECK(site.sys.text(die(0, "min_freq_khz")) == "800000");
  CHECK(site.sys.text(die(1, "min_freq_khz")) == "1600000");
  CHECK(site.report().converged);
  CHECK(site.report().max_uncore_mhz == 1600);
  SUBCASE("removed") {
    site.ask({});
    CHECK(site.sys.text(die(1, "min_freq_khz")) == "1800000");
    CHECK(site.sys.text(die(1, "max_freq_khz")) == "2400000");
    CHECK_FALSE(site.agent->held()->any());
  }
  SUBCASE("another agent gives it back") {
    site.start();
    site.ask({});
    CHECK(site.sys.text(die(0, "max_freq_khz")) == "2400000");
    CHECK(site.sys.text(die(1, "min_freq_khz")) == "1800000");
  }
  SUBCASE("what somebody else sets is set again") {
    site.sys.by_hand(die(0, "max_freq_khz"), "2000000");
    site.step(6);
    CHECK(site.sys.text(die(0, "max_freq_khz")) == "1600000");
  }
  SUBCASE("a die that is away when it is let go gets its own when it comes back") {
    for (const int cpu : {2, 3}) site.sys.by_hand(online(cpu), "0");
    site.ask({});
    CHECK(site.sys.text(die(0, "max_freq_khz")) == "2400000");
    CHECK(site.agent->held()->uncore);
    for (const int cpu : {2, 3}) site.sys.by_hand(online(cpu), "1");
    site.step(6);
    CHECK(site.sys.text(die(1, "max_freq_khz")) == "2400000");
    CHECK_FALSE(site.agent->held()->any());
  }
  SUBCASE("out of range is refused with the range") {
    site.ask({{"kwatt.dev/max-uncore-mhz", "2500"}});
    says(site.errors(), "uncore frequency 2500 MHz is outside the hardware's 800 to 2400 MHz");
    CHECK(site.sys.text(die(0, "max_freq_khz")) == "1600000");
  }
}

TEST_CASE("a kernel that shows no uncore frequency says so") {
  Site site;
  site.ask({{"kwatt.dev/max-uncore-mhz", "1600"}});
  says(site.errors(), "shows no uncore frequency that could be limited");
  CHECK_FALSE(site.report().converged);
}

TEST_CASE("what is asked for stays through the loss of the API server, and can be given back") {
  Site site;
  site.ask({{"kwatt.dev/governor", "powersave"}});
  site.client.failure = ErrorCode::unavailable;
  site.sys.by_hand(policy(1, "scaling_governor"), "performance");
  site.step(70);
  CHECK(site.governor(1) == "powersave");
  CHECK(site.agent->stop_hardware());
  for (int i = 0; i < 4; ++i) CHECK(site.governor(i) == "schedutil");
}

}  // namespace
}  // namespace kwatt::agent

TEST_SUITE_END();
