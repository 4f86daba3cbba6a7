#include <doctest/doctest.h>

#include "agent/original.hpp"
#include "test/hardware/fake_machine.hpp"

namespace kwatt::agent {
namespace {

using hardware::FakeHostFs;
using hardware::FakeMachine;

MachineState state_of(const FakeHostFs& fs) {
  return {*hardware::read_cpufreq(fs), *hardware::read_zones(fs), std::nullopt};
}

TEST_CASE("original settings survive the way through the API exactly") {
  FakeHostFs fs;
  FakeMachine{.driver = "intel_pstate",
              .preferences = "default performance balance_performance",
              .max_khz = 5'083'398,
              .policies = 5,
              .cpus_per_policy = 1,
              .packages = 2,
              .package_limit_uw = 125'500'000}
      .build(fs);
  fs.put(FakeMachine::policy_file(1, "scaling_governor"), "performance\n");
  fs.put(FakeMachine::policy_file(4, "scaling_min_freq"), "1000001\n");
  fs.put(FakeMachine::zone_file("intel-rapl:1", "enabled"), "0\n");
  const Original original = capture(state_of(fs), "boot-1");
  const api::OriginalSettings report = to_report(original, {});
  CHECK(report.boot_id == "boot-1");
  CHECK(report.governor == "performance,schedutil");
  CHECK(report.epp == "balance_performance");
  CHECK(report.min_mhz == 800);
  CHECK(report.max_mhz == 5083);
  CHECK(report.cap_watts == 250);
  CHECK(report.exact ==
        "cpu/1/performance/800000/5083398/balance_performance "
        "cpu/0,2-3/schedutil/800000/5083398/balance_performance "
        "cpu/4/schedutil/1000001/5083398/balance_performance "
        "zone/intel-rapl:0/125500000/1 zone/intel-rapl:1/125500000/0");
  const StoredOriginal stored = from_report(report, MachineState{});
  CHECK((stored.original == original));
  CHECK((stored.held == Held{}));
  CHECK_FALSE(says_held(report));
}

TEST_CASE("what is held is stored with it") {
  FakeHostFs fs;
  FakeMachine{.policies = 1}.build(fs);
  const Original original = capture(state_of(fs), "boot-1");
  const Held held{
      .governor = true, .frequency = false, .preference = true, .cap = true, .uncore = true};
  const api::OriginalSettings report = to_report(original, held);
  CHECK(report.exact.ends_with(" held/governor,epp,cap,uncore"));
  CHECK(says_held(report));
  CHECK((from_report(report, MachineState{}).held == held));
  CHECK((from_report(report, MachineState{}).original == original));
}

TEST_CASE("what is owed to those who were away is stored with it") {
  FakeHostFs fs;
  FakeMachine{.policies = 1}.build(fs);
  const Original original = capture(state_of(fs), "boot-1");
  Held held;
  held.owed = {{2, 3, 7}, {"intel-rapl:1", "intel-rapl:2"}};
  const api::OriginalSettings report = to_report(original, held);
  CHECK(report.exact.ends_with(" owed/2-3,7 owed-zone/intel-rapl:1 owed-zone/intel-rapl:2"));
  CHECK(says_held(report));
  CHECK((from_report(report, MachineState{}).held == held));
}

TEST_CASE("a machine without anything to set has an empty original") {
  const Original original = capture(MachineState{}, "boot-1");
  const api::OriginalSettings report = to_report(original, {});
  CHECK(report.exact.empty());
  CHECK_FALSE(says_held(report));
  CHECK((from_report(report, MachineState{}).original == original));
}

TEST_CASE("without the exact text the readable fields count") {
  FakeHostFs fs;
  FakeMachine{.packages = 2}.build(fs);
  const MachineState state = state_of(fs);
  for (const std::string exact :
       {"", "cpu", "cpu/0/x/1", "cpu/5-1/powersave/1/2/", "cpu/0-99999999/powersave/1/2/",
        "cpu/0/powersave/1/2/ zone/z/1/2", "zone//1/1", "disk/0", "held", "held/x",
        "held/governor,", "cpu/0/powersave/1/2/  "}) {
    CAPTURE(exact);
    api::OriginalSettings report;
    report.boot_id = "boot-1";
    report.governor = "powersave";
    report.min_mhz = 800;
    report.max_mhz = 2000;
    report.cap_watts = 300;
    report.exact = exact;
    const StoredOriginal stored = from_report(report, state);
    CHECK_FALSE(stored.held);
    CHECK(says_held(report) == !exact.empty());
    const Original& original = stored.original;
    CHECK(original.boot_id == "boot-1");
    REQUIRE(original.policies.size() == 2);
    CHECK(original.policies[1].governor == "powersave");
    CHECK(original.policies[1].min_khz == 800'000);
    CHECK(original.policies[1].max_khz == 2'000'000);
    REQUIRE(original.zones.size() == 2);
    CHECK(original.zones[0].limit_uw == 150'000'000);
    CHECK(original.zones[0].enabled);
  }
}

}  // namespace
}  // namespace kwatt::agent
