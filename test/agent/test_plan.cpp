#include <doctest/doctest.h>

#include "agent/plan.hpp"
#include "test/hardware/fake_machine.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::agent {
namespace {

using hardware::AttributeWrite;
using hardware::FakeHostFs;
using hardware::FakeMachine;

FakeMachine pstate(std::string governor = "powersave") {
  return {.driver = "intel_pstate",
          .governors = "performance powersave",
          .governor = std::move(governor),
          .preferences = "default performance balance_performance balance_power power",
          .policies = 2,
          .cpus_per_policy = 1};
}

// A fake machine under the plan: applies it until there is nothing left to write.
struct Bench {
  explicit Bench(const FakeMachine& machine) {
    machine.build(fs);
    original = capture(state(), "boot-1");
  }
  MachineState state() const {
    return {*hardware::read_cpufreq(fs), *hardware::read_zones(fs), non_package};
  }
  Plan plan(const DesiredSettings& desired, bool cap_changed = true) const {
    const MachineState now = state();
    return make_plan({desired, now, original, held, cap_changed});
  }
  // Errors of stores, if any.
  std::vector<std::string> apply(const DesiredSettings& desired) {
    std::vector<std::string> errors;
    const Plan first = plan(desired);
    held = first.held;
    for (const AttributeWrite& write : first.writes) {
      if (auto done = perform(fs, write); !done) errors.push_back(done.error().text());
    }
    const Plan second = plan(desired);
    held = second.held;
    if (errors.empty()) CHECK(second.writes.empty());
    return errors;
  }
  std::string governor(int index = 0) const {
    return fs.text(FakeMachine::policy_file(index, "scaling_governor"));
  }
  std::string preference() const {
    return fs.text(FakeMachine::policy_file(0, "energy_performance_preference"));
  }
  std::string maximum() const { return fs.text(FakeMachine::policy_file(0, "scaling_max_freq")); }
  std::string limit(int package = 0) const {
    return fs.text(FakeMachine::zone_file("intel-rapl:" + std::to_string(package),
                                          "constraint_0_power_limit_uw"));
  }

  FakeHostFs fs;
  std::optional<Milliwatts> non_package;
  Original original;
  Held held;
};

DesiredSettings want(std::optional<std::string> governor,
                     std::optional<std::int64_t> mhz = std::nullopt,
                     std::optional<std::string> preference = std::nullopt,
                     std::optional<std::int64_t> cap = std::nullopt) {
  DesiredSettings settings;
  settings.governor = std::move(governor);
  if (mhz) settings.max_frequency = Megahertz{*mhz};
  settings.preference = std::move(preference);
  if (cap) settings.power_cap = watts(*cap);
  return settings;
}

TEST_CASE("nothing asked and nothing held: nothing is written, whatever people set by hand") {
  Bench bench{FakeMachine{}};
  bench.fs.put(FakeMachine::policy_file(0, "scaling_governor"), "performance\n");
  const Plan plan = bench.plan({});
  CHECK(plan.writes.empty());
  CHECK_FALSE(plan.held.any());
}

TEST_CASE("all settings are applied to all policies and packages, and restored") {
  Bench bench{FakeMachine{.packages = 2}};
  const MachineState before = bench.state();
  CHECK(bench.apply(want("powersave", 1200, std::nullopt, 240)).empty());
  CHECK(bench.governor(0) == "powersave\n");
  CHECK(bench.governor(2) == "powersave\n");
  CHECK(bench.maximum() == "1200000\n");
  CHECK(bench.limit(0) == "120000000\n");
  CHECK(bench.limit(1) == "120000000\n");
  CHECK(bench.held.any());
  CHECK(bench.apply({}).empty());
  CHECK((bench.state().cpu == before.cpu));
  CHECK((bench.state().zones == before.zones));
  CHECK_FALSE(bench.held.any());
}

TEST_CASE("one setting that is let go is restored while the others stay") {
  Bench bench{FakeMachine{}};
  bench.apply(want("powersave", 1200));
  bench.apply(want("powersave"));
  CHECK(bench.governor() == "powersave\n");
  CHECK(bench.maximum() == "3200000\n");
  CHECK(bench.held.governor);
  CHECK_FALSE(bench.held.frequency);
}

TEST_CASE("what the hardware lost is written again") {
  Bench bench{FakeMachine{}};
  bench.apply(want("powersave"));
  bench.fs.put(FakeMachine::policy_file(2, "scaling_governor"), "performance\n");
  const Plan plan = bench.plan(want("powersave"), false);
  REQUIRE(plan.writes.size() == 1);
  CHECK(plan.writes.front().path == FakeMachine::policy_file(2, "scaling_governor"));
}

TEST_CASE("a refusal leaves its setting as it is and applies the rest") {
  struct Case {
    const char* name;
    DesiredSettings desired;
    std::string sentence;
  };
  const Case cases[] = {
      {"unknown governor", want("turbo", 1200), "governor turbo is not offered"},
      {"too high", want(std::nullopt, 4000, std::nullopt, 150), "800 to 3200 MHz"},
      {"too low", want(std::nullopt, 100, std::nullopt, 150), "800 to 3200 MHz"},
      {"no EPP here", want("powersave", std::nullopt, "power"), "no energy performance preference"},
      {"cap too high", want("powersave", std::nullopt, std::nullopt, 201), "20 to 200 W"},
      {"cap too low", want("powersave", std::nullopt, std::nullopt, 19), "20 to 200 W"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Bench bench{FakeMachine{}};
    const Plan plan = bench.plan(c.desired);
    REQUIRE(plan.refusals.size() == 1);
    CHECK(plan.refusals.front().find(c.sentence) != std::string::npos);
    CHECK_FALSE(plan.writes.empty());
  }
}

TEST_CASE("a refused change keeps the setting that was in force") {
  Bench bench{FakeMachine{}};
  bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 100));
  const Plan plan = bench.plan(want(std::nullopt, std::nullopt, std::nullopt, 9999));
  CHECK(plan.writes.empty());
  CHECK(plan.refusals.size() == 1);
  CHECK(plan.held.cap);
  DesiredSettings unreadable;
  unreadable.unreadable = {Lever::cap};
  CHECK(bench.plan(unreadable).writes.empty());
  CHECK(bench.plan(unreadable).held.cap);
  bench.apply({});
  CHECK(bench.limit() == "200000000\n");
}

TEST_CASE("machines without the hardware refuse in a sentence") {
  FakeHostFs empty;
  const MachineState now;
  const Original original = capture(now, "b");
  const DesiredSettings desired = want("powersave", 1000, "power", 100);
  const Plan plan = make_plan({desired, now, original, {}, true});
  CHECK(plan.writes.empty());
  CHECK(plan.refusals.size() == 4);
  CHECK((cap_range(now, original) == CapRange{}));
  CHECK(effective_cap_watts(now, desired) == 0);
}

TEST_CASE("preference and governor are written in the order the kernel takes") {
  Bench bench{pstate("performance")};
  CHECK(bench.apply(want("powersave", std::nullopt, "power")).empty());
  CHECK(bench.governor() == "powersave\n");
  CHECK(bench.preference() == "power\n");
  CHECK(bench.apply({}).empty());
  CHECK(bench.governor() == "performance\n");
}

TEST_CASE("a preference that the governor forbids is refused before it is tried") {
  Bench bench{pstate()};
  const Plan plan = bench.plan(want("performance", std::nullopt, "power"));
  REQUIRE(plan.refusals.size() == 1);
  CHECK(plan.refusals.front().find("performance governor") != std::string::npos);
  Bench other{pstate("performance")};
  CHECK(other.plan(want(std::nullopt, std::nullopt, "power")).refusals.size() == 1);
}

TEST_CASE("the driver's own preference is not touched by a governor alone") {
  Bench bench{pstate("performance")};
  bench.fs.put(FakeMachine::policy_file(0, "energy_performance_preference"), "performance\n");
  bench.original = capture(bench.state(), "boot-1");
  const Plan plan = bench.plan(want("powersave"));
  for (const AttributeWrite& write : plan.writes) {
    CHECK(write.path.find("preference") == std::string::npos);
  }
}

TEST_CASE("a preference of ours goes away even if the original was hidden by performance") {
  Bench bench{pstate("performance")};
  bench.apply(want("powersave", std::nullopt, "power"));
  CHECK(bench.apply(want("powersave")).empty());
  CHECK(bench.preference() == "balance_performance\n");
}

TEST_CASE("the original preference comes back with the original governor") {
  Bench bench{pstate("powersave")};
  bench.fs.put(FakeMachine::policy_file(0, "energy_performance_preference"), "balance_power\n");
  bench.original = capture(bench.state(), "boot-1");
  bench.apply(want("performance"));
  // A driver that comes back from performance with its own default.
  bench.fs.put(FakeMachine::policy_file(0, "energy_performance_preference"), "performance\n");
  CHECK(bench.apply({}).empty());
  CHECK(bench.governor() == "powersave\n");
  CHECK(bench.preference() == "balance_power\n");
  CHECK_FALSE(bench.held.any());
}

TEST_CASE("while the draw outside the packages is being measured no limit is raised") {
  Bench bench{FakeMachine{.packages = 2}};
  const DesiredSettings cap = want(std::nullopt, std::nullopt, std::nullopt, 300);
  bench.non_package = watts(100);
  REQUIRE(bench.apply(cap).empty());
  bench.non_package.reset();  // a new agent has not measured yet: 150 W each would be too much
  MachineState now = bench.state();
  const PlanInput input{cap, now, bench.original, bench.held, true};
  CHECK(make_plan(input).writes.size() == 2);
  CHECK(effective_cap_watts(now, cap) == 200);
  now.measuring_outside = true;
  CHECK(make_plan(input).writes.empty());
  CHECK(effective_cap_watts(now, cap) == 0);
  // Within reach once what is drawn outside is added: it is not refused before that is known.
  const DesiredSettings high = want(std::nullopt, std::nullopt, std::nullopt, 480);
  const Plan waiting = make_plan({high, now, bench.original, bench.held, true});
  CHECK(waiting.writes.empty());
  CHECK(waiting.refusals.empty());
  CHECK(waiting.held.cap);
  const DesiredSettings lower = want(std::nullopt, std::nullopt, std::nullopt, 180);
  const PlanInput less{lower, now, bench.original, bench.held, true};
  CHECK(make_plan(less).writes.size() == 2);
}

TEST_CASE("the cap counts what is drawn outside the packages") {
  Bench bench{FakeMachine{.packages = 2}};
  bench.non_package = watts(100);
  CHECK((cap_range(bench.state(), bench.original) == CapRange{140, 500}));
  CHECK(bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 300)).empty());
  CHECK(bench.limit(0) == "100000000\n");
  CHECK(effective_cap_watts(bench.state(), want(std::nullopt, std::nullopt, std::nullopt, 300)) ==
        300);
  SUBCASE("a little more draw outside does not cost a write") {
    bench.non_package = Milliwatts{101'500};
    CHECK(bench.plan(want(std::nullopt, std::nullopt, std::nullopt, 300), false).writes.empty());
  }
  SUBCASE("more than a watt per package does") {
    bench.non_package = watts(110);
    const Plan plan = bench.plan(want(std::nullopt, std::nullopt, std::nullopt, 300), false);
    REQUIRE(plan.writes.size() == 2);
    CHECK(plan.writes.front().value == "95000000");
  }
  SUBCASE("another cap is set exactly") {
    CHECK(bench.plan(want(std::nullopt, std::nullopt, std::nullopt, 301), true).writes.size() == 2);
  }
}

TEST_CASE("a maximum the hardware does not name is the original limit, not our own cap") {
  Bench bench{FakeMachine{}};
  bench.fs.put(FakeMachine::zone_file("intel-rapl:0", "constraint_0_max_power_uw"), "0\n");
  bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 100));
  CHECK((cap_range(bench.state(), bench.original) == CapRange{20, 200}));
  CHECK(bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 150)).empty());
  CHECK(bench.limit() == "150000000\n");
}

TEST_CASE("a disabled limit is switched on for a cap and off again afterwards") {
  Bench bench{FakeMachine{}};
  const std::string path = FakeMachine::zone_file("intel-rapl:0", "enabled");
  bench.fs.put(path, "0\n");
  bench.original = capture(bench.state(), "boot-1");
  bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 100));
  CHECK(bench.fs.text(path) == "1\n");
  bench.apply({});
  CHECK(bench.fs.text(path) == "0\n");
  CHECK(bench.limit() == "200000000\n");
}

TEST_CASE("an effective cap is what the hardware holds, not what was asked") {
  Bench bench{FakeMachine{}};
  const DesiredSettings desired = want(std::nullopt, std::nullopt, std::nullopt, 100);
  CHECK(effective_cap_watts(bench.state(), desired) == 200);
  CHECK(effective_cap_watts(bench.state(), {}) == 0);
  bench.apply(desired);
  CHECK(effective_cap_watts(bench.state(), desired) == 100);
}

TEST_CASE("after a crash the stored original tells what is still to be restored") {
  Bench bench{FakeMachine{}};
  bench.apply(want("powersave", 1200, std::nullopt, 100));
  // The agent is killed; a new one knows only the stored original and the machine.
  bench.held = difference(bench.state(), bench.original);
  CHECK(bench.held.governor);
  CHECK(bench.held.frequency);
  CHECK(bench.held.cap);
  CHECK(bench.apply({}).empty());
  CHECK(bench.governor() == "schedutil\n");
  CHECK(bench.limit() == "200000000\n");
  CHECK_FALSE(difference(bench.state(), bench.original).any());
}

TEST_CASE("what nobody holds is taken over as it is, what is held is not") {
  Bench bench{FakeMachine{}};
  bench.apply(want("powersave"));
  bench.fs.put(FakeMachine::policy_file(0, "scaling_max_freq"), "2000000\n");
  bench.fs.put(FakeMachine::zone_file("intel-rapl:0", "constraint_0_power_limit_uw"),
               "180000000\n");
  refresh_original(bench.original, bench.state(), bench.held);
  CHECK(bench.original.policies.front().governor == "schedutil");
  CHECK(bench.original.policies.front().max_khz == 2'000'000);
  CHECK(bench.original.zones.front().limit_uw == 180'000'000);
}

TEST_CASE("a CPU that came online later keeps what it has") {
  Bench bench{FakeMachine{.policies = 1}};
  FakeMachine{.policies = 2}.build(bench.fs);
  CHECK(bench.apply(want("powersave")).empty());
  CHECK(bench.governor(2) == "powersave\n");
  CHECK(bench.apply({}).empty());
  CHECK(bench.governor(0) == "schedutil\n");
}

TEST_CASE("a locked limit is an error of the store, not a success") {
  Bench bench{FakeMachine{}};
  bench.fs.fail_write(FakeMachine::zone_file("intel-rapl:0", "constraint_0_power_limit_uw"),
                      ENODATA);
  const auto errors = bench.apply(want(std::nullopt, std::nullopt, std::nullopt, 100));
  REQUIRE(errors.size() == 1);
  CHECK(bench.plan(want(std::nullopt, std::nullopt, std::nullopt, 100)).writes.size() == 1);
}

}  // namespace
}  // namespace kwatt::agent
