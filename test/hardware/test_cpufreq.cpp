#include <doctest/doctest.h>

#include "hardware/cpufreq.hpp"
#include "test/hardware/fake_machine.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

FakeMachine intel_pstate() {
  return {.driver = "intel_pstate",
          .governors = "performance powersave",
          .governor = "powersave",
          .preferences = "default performance balance_performance balance_power power"};
}

CpuPolicy policy(std::string governor, std::int64_t min_khz, std::int64_t max_khz,
                 std::string epp = {}) {
  return {.index = 0,
          .cpus = 1,
          .governor = std::move(governor),
          .epp = std::move(epp),
          .min_khz = min_khz,
          .max_khz = max_khz,
          .current_khz = 0,
          .hardware_min_khz = 800'000,
          .hardware_max_khz = 3'200'000,
          .steps_khz = {},
          .performance_forces_epp = true};
}

std::vector<std::string> short_form(const std::vector<AttributeWrite>& writes) {
  std::vector<std::string> lines;
  for (const AttributeWrite& write : writes) {
    lines.push_back(write.path.substr(write.path.rfind('/') + 1) + "=" + write.value);
  }
  return lines;
}

TEST_CASE("a machine without cpufreq has no policies, which is not an error") {
  FakeHostFs fs;
  fs.put("devices/system/cpu/online", "0-3\n");
  auto read = read_cpufreq(fs);
  REQUIRE(read);
  CHECK(read->policies.empty());
  CHECK(check_governor(*read, "powersave").error().code == ErrorCode::unsupported);
  CHECK(check_max_frequency(*read, Megahertz{1000}).error().code == ErrorCode::unsupported);
  CHECK(check_preference(*read, "power", "").error().code == ErrorCode::unsupported);
  CHECK(summarize(*read) == CpuSummary{});
}

TEST_CASE("all policies are read, in the order of their numbers") {
  FakeHostFs fs;
  FakeMachine{.policies = 6, .cpus_per_policy = 2}.build(fs);
  auto read = read_cpufreq(fs);
  REQUIRE(read);
  CHECK(read->driver == "acpi-cpufreq");
  REQUIRE(read->policies.size() == 6);
  CHECK(read->policies[5].index == 10);
  CHECK(read->policies[5].cpus == 2);
  CHECK(read->governors.size() == 6);
  CHECK(read->preferences.empty());
  const CpuSummary summary = summarize(*read);
  CHECK(summary.governor == "schedutil");
  CHECK(summary.hardware_min.count() == 800);
  CHECK(summary.hardware_max.count() == 3200);
  CHECK(summary.current.count() == 1600);
  CHECK(average_frequency(fs, *read).count() == 1600);
}

TEST_CASE("policies that differ are reported together") {
  FakeHostFs fs;
  FakeMachine{.policies = 3, .cpus_per_policy = 1}.build(fs);
  fs.put(FakeMachine::policy_file(1, "scaling_governor"), "powersave\n");
  fs.put(FakeMachine::policy_file(1, "scaling_max_freq"), "1200000\n");
  fs.put(FakeMachine::policy_file(2, "scaling_min_freq"), "1000000\n");
  const CpuSummary summary = summarize(*read_cpufreq(fs));
  CHECK(summary.governor == "powersave,schedutil");
  CHECK(summary.min.count() == 800);
  CHECK(summary.max.count() == 3200);
}

TEST_CASE("policies of offline CPUs are left out") {
  FakeHostFs fs;
  FakeMachine{.policies = 3, .cpus_per_policy = 1}.build(fs);
  fs.put(FakeMachine::policy_file(1, "affected_cpus"), "\n");
  fs.fail_read(FakeMachine::policy_file(2, "scaling_governor"), EBUSY);
  auto read = read_cpufreq(fs);
  REQUIRE(read);
  CHECK(read->policies.size() == 1);
}

TEST_CASE("only what every policy offers is offered") {
  FakeHostFs fs;
  FakeMachine{.policies = 2, .cpus_per_policy = 1}.build(fs);
  fs.put(FakeMachine::policy_file(1, "scaling_available_governors"), "performance powersave \n");
  CHECK(read_cpufreq(fs)->governors == std::vector<std::string>{"powersave", "performance"});
}

TEST_CASE("an unreadable frequency is unknown, not zero load") {
  FakeHostFs fs;
  FakeMachine{.policies = 2, .cpus_per_policy = 1}.build(fs);
  fs.put(FakeMachine::policy_file(0, "scaling_cur_freq"), "<unknown>\n");
  const auto read = read_cpufreq(fs);
  CHECK(summarize(*read).current.count() == 1600);
  fs.fail_read(FakeMachine::policy_file(1, "scaling_cur_freq"), EAGAIN);
  CHECK(average_frequency(fs, *read).count() == 0);
}

TEST_CASE("a policy with a broken or missing file is left out and named, the others are read") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  const std::string path = FakeMachine::policy_file(2, "scaling_max_freq");
  const auto problem = [&] {
    const auto read = read_cpufreq(fs);
    REQUIRE(read);
    CHECK(read->policies.size() == 1);
    REQUIRE(read->problems.size() == 1);
    return read->problems.front();
  };
  fs.put(path, "garbage\n");
  CHECK(problem().starts_with("policy2 is left out: "));
  fs.fail_read(path, EACCES);
  CHECK(problem().find("Permission denied") != std::string::npos);
  fs.forget(path);
  CHECK(problem().find("No such file") != std::string::npos);
}

TEST_CASE("only the settings are read again while the same CPUs are online") {
  FakeHostFs fs;
  FakeMachine{.driver = "intel_pstate",
              .governors = "performance powersave",
              .governor = "powersave",
              .preferences = "default performance balance_performance balance_power power"}
      .build(fs);
  fs.put("devices/system/cpu/online", "0-3\n");
  auto known = read_cpufreq(fs);
  REQUIRE(known);
  fs.put(FakeMachine::policy_file(2, "scaling_governor"), "performance\n");
  fs.put(FakeMachine::policy_file(2, "scaling_max_freq"), "1000000\n");
  fs.put(FakeMachine::policy_file(2, "energy_performance_preference"), "performance\n");
  REQUIRE(refresh_settings(fs, *known));
  CHECK((*known == *read_cpufreq(fs)));
  SUBCASE("a CPU went") {
    fs.put("devices/system/cpu/online", "0-2\n");
  }
  SUBCASE("a policy went") {
    fs.forget(FakeMachine::policy_file(0, "scaling_governor"));
  }
  SUBCASE("it is not known which CPUs are online") {
    fs.forget("devices/system/cpu/online");
  }
  CHECK_FALSE(refresh_settings(fs, *known));
}

TEST_CASE("drivers with steps get the highest step that is not above the limit") {
  CpuPolicy p;
  p.hardware_min_khz = 800'000;
  p.hardware_max_khz = 3'800'000;
  p.steps_khz = {800'000, 1'733'333, 3'200'000};
  CHECK(policy_khz(p, Megahertz{800}) == 800'000);
  CHECK(policy_khz(p, Megahertz{1732}) == 800'000);
  CHECK(policy_khz(p, Megahertz{1733}) == 1'733'333);
  CHECK(policy_khz(p, Megahertz{3199}) == 1'733'333);
  CHECK(policy_khz(p, Megahertz{3800}) == 3'200'000);
}

TEST_CASE("a frequency outside the hardware's range is refused with the range, never clamped") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  const auto read = read_cpufreq(fs);
  for (const std::int64_t mhz : {799, 3201, 1, 100'000}) {
    CAPTURE(mhz);
    const auto checked = check_max_frequency(*read, Megahertz{mhz});
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::out_of_range);
    CHECK(checked.error().message.find("800 to 3200 MHz") != std::string::npos);
  }
  CHECK(check_max_frequency(*read, Megahertz{800}));
  CHECK(check_max_frequency(*read, Megahertz{3200}));
}

TEST_CASE("an unknown governor is refused with the ones on offer") {
  FakeHostFs fs;
  intel_pstate().build(fs);
  const auto checked = check_governor(*read_cpufreq(fs), "ondemand");
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::invalid_argument);
  CHECK(checked.error().message.find("performance, powersave") != std::string::npos);
}

TEST_CASE("preferences are checked as the kernel would") {
  FakeHostFs fs;
  intel_pstate().build(fs);
  const auto read = read_cpufreq(fs);
  CHECK(check_preference(*read, "power", "powersave"));
  CHECK(check_preference(*read, "128", "powersave"));
  CHECK(check_preference(*read, "performance", "performance"));
  CHECK(check_preference(*read, "256", "powersave").error().code == ErrorCode::invalid_argument);
  CHECK(check_preference(*read, "turbo", "powersave").error().code == ErrorCode::invalid_argument);
  CHECK(check_preference(*read, "power", ""));
  CHECK(check_preference(*read, "power", "performance").error().code ==
        ErrorCode::invalid_argument);
  FakeHostFs plain;
  FakeMachine{}.build(plain);
  CHECK(check_preference(*read_cpufreq(plain), "power", "powersave").error().code ==
        ErrorCode::unsupported);
}

TEST_CASE("a limit of the machine becomes the exact limit of each policy") {
  CpuPolicy p = policy("powersave", 800'000, 3'200'000);
  p.hardware_max_khz = 5'083'398;
  CHECK(policy_khz(p, Megahertz{5083}) == 5'083'398);
  CHECK(policy_khz(p, Megahertz{6000}) == 5'083'398);
  CHECK(policy_khz(p, Megahertz{1200}) == 1'200'000);
  CHECK(policy_khz(p, Megahertz{800}) == 800'000);
  CHECK(policy_khz(p, Megahertz{500}) == 800'000);
}

TEST_CASE("stores come in an order the kernel accepts") {
  struct Case {
    const char* name;
    CpuPolicy now, wanted;
    std::vector<std::string> writes;
    std::string shown = {};
  };
  const Case cases[] = {
      {"nothing to do",
       policy("powersave", 800'000, 3'200'000),
       policy("powersave", 800'000, 3'200'000),
       {}},
      {"only the governor",
       policy("schedutil", 800'000, 3'200'000),
       policy("powersave", 800'000, 3'200'000),
       {"scaling_governor=powersave"}},
      {"a maximum below the minimum in force lowers the minimum first",
       policy("powersave", 2'000'000, 3'200'000),
       policy("powersave", 2'000'000, 1'000'000),
       {"scaling_min_freq=1000000", "scaling_max_freq=1000000"}},
      {"raising both writes the maximum first",
       policy("powersave", 800'000, 1'000'000),
       policy("powersave", 2'000'000, 3'200'000),
       {"scaling_max_freq=3200000", "scaling_min_freq=2000000"}},
      {"the preference follows the governor that allows it",
       policy("performance", 800'000, 3'200'000, "performance"),
       policy("powersave", 800'000, 3'200'000, "power"),
       {"scaling_governor=powersave", "energy_performance_preference=power"}},
      {"under performance the preference is the kernel's",
       policy("powersave", 800'000, 3'200'000, "power"),
       policy("performance", 800'000, 3'200'000, "power"),
       {"scaling_governor=performance"}},
      {"a preference the driver lacks is not written",
       policy("powersave", 800'000, 3'200'000),
       policy("powersave", 800'000, 3'200'000, "power"),
       {}},
      {"a number is written",
       policy("powersave", 800'000, 3'200'000, "balance_power"),
       policy("powersave", 800'000, 3'200'000, "192"),
       {"energy_performance_preference=192"}},
      {"but not again and again because it reads back as a word",
       policy("powersave", 800'000, 3'200'000, "balance_power"),
       policy("powersave", 800'000, 3'200'000, "192"),
       {},
       "balance_power"},
      {"it is if the word is another one then",
       policy("powersave", 800'000, 3'200'000, "power"),
       policy("powersave", 800'000, 3'200'000, "192"),
       {"energy_performance_preference=192"},
       "balance_power"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(short_form(changes(c.now, c.wanted, c.shown)) == c.writes);
    CHECK(same_settings(c.now, c.wanted, c.shown) == c.writes.empty());
  }
}

TEST_CASE("applying to a fake kernel converges and can be undone") {
  for (const FakeMachine& machine : {FakeMachine{}, intel_pstate()}) {
    CAPTURE(machine.driver);
    FakeHostFs fs;
    machine.build(fs);
    const auto original = *read_cpufreq(fs);
    const auto apply = [&](auto&& wanted_of) {
      const auto now = *read_cpufreq(fs);
      for (std::size_t i = 0; i < now.policies.size(); ++i) {
        for (const AttributeWrite& write : changes(now.policies[i], wanted_of(i))) {
          const auto done = perform(fs, write);
          CHECK_MESSAGE(done.has_value(), write.what);
        }
      }
    };
    apply([&](std::size_t i) {
      CpuPolicy wanted = original.policies[i];
      wanted.governor = "performance";
      wanted.max_khz = 1'500'000;
      return wanted;
    });
    const auto changed = *read_cpufreq(fs);
    CHECK(summarize(changed).governor == "performance");
    CHECK(summarize(changed).max.count() == 1500);
    apply([&](std::size_t i) { return original.policies[i]; });
    CHECK(*read_cpufreq(fs) == original);
  }
}

}  // namespace
}  // namespace kwatt::hardware
