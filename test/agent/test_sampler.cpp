#include <doctest/doctest.h>

#include "agent/sampler.hpp"
#include "test/hardware/fake_machine.hpp"

namespace kwatt::agent {
namespace {

using hardware::FakeHostFs;
using hardware::FakeMachine;
using std::chrono::seconds;
using telemetry::PowerSource;

// A machine whose energy counters and CPU ticks the test moves on by one second at a time.
struct Bench {
  Bench() {
    FakeMachine{.meter = false}.build(sys);
    set_ticks();
    reload();
    REQUIRE_FALSE(sampler.sample(state, TimePoint{}, now));
  }
  void reload() {
    state.cpu = *hardware::read_cpufreq(sys);
    state.zones = *hardware::read_zones(sys);
  }
  void set_ticks() {
    proc.put("stat", "cpu  " + std::to_string(busy) + " 0 0 " + std::to_string(idle) + " 0 0 0\n");
  }
  void zone(const std::string& id, const std::string& name, std::int64_t energy) {
    sys.put(FakeMachine::zone_file(id, "name"), name + "\n");
    sys.put(FakeMachine::zone_file(id, "energy_uj"), std::to_string(energy) + "\n");
    sys.put(FakeMachine::zone_file(id, "max_energy_range_uj"), "262143328850\n");
  }
  std::optional<telemetry::AgentSample> second(std::int64_t package_watts) {
    package_uj += package_watts * 1'000'000;
    sys.put(FakeMachine::zone_file("intel-rapl:0", "energy_uj"), std::to_string(package_uj) + "\n");
    busy += 25;
    idle += 75;
    set_ticks();
    now += seconds{1};
    return sampler.sample(state, TimePoint{}, now);
  }

  FakeHostFs sys, proc;
  MachineState state;
  std::int64_t busy = 1000, idle = 1000, package_uj = 1'000'000'000;
  MonotonicPoint now{seconds{1000}};
  Sampler sampler{sys, proc};
};

TEST_CASE_FIXTURE(Bench, "a sample holds the averages since the one before") {
  const auto sample = second(120);
  REQUIRE(sample);
  CHECK(sample->cpu_busy == Permille{250});
  CHECK(sample->utilization == Permille{125});  // at half the maximum frequency
  CHECK(sample->frequency == Megahertz{1600});
  CHECK(sample->governor == "schedutil");
  CHECK(sample->power == watts(120));
  CHECK((sample->source == PowerSource::rapl));
  CHECK(sampler.errors().empty());
  CHECK_FALSE(sampler.non_package());
}

TEST_CASE_FIXTURE(Bench, "the machine's meter comes before psys, psys before packages and memory") {
  zone("intel-rapl:0:0", "dram", 0);
  reload();
  second(100);
  zone("intel-rapl:0:0", "dram", 10'000'000);
  CHECK(second(100)->power == watts(110));
  zone("intel-rapl:1", "psys", 0);
  reload();
  second(100);
  zone("intel-rapl:1", "psys", 150'000'000);
  auto sample = second(100);
  CHECK(sample->power == watts(150));
  CHECK((sample->source == PowerSource::rapl_psys));
  sys.put("class/hwmon/hwmon3/name", "power_meter\n");
  sys.put("class/hwmon/hwmon3/power1_average", "210000000\n");
  now += seconds{60};  // meters are looked for once a minute
  second(100);
  sample = second(100);
  CHECK(sample->power == watts(210));
  CHECK((sample->source == PowerSource::hwmon));
}

TEST_CASE_FIXTURE(Bench,
                  "the draw outside the packages takes three differences, if it can be measured") {
  SUBCASE("it cannot") {
    for (int i = 0; i < 2; ++i) second(100);
    CHECK(sampler.measuring_outside());
    second(100);
    CHECK_FALSE(sampler.measuring_outside());
    CHECK_FALSE(sampler.non_package());
  }
  SUBCASE("it can") {
    sys.put("class/hwmon/hwmon3/name", "power_meter\n");
    sys.put("class/hwmon/hwmon3/power1_average", "210000000\n");
    now += seconds{60};                       // meters are looked for once a minute
    for (int i = 0; i < 3; ++i) second(100);  // no energy over a gap so long
    CHECK(sampler.measuring_outside());
    second(100);
    CHECK_FALSE(sampler.measuring_outside());
    CHECK(sampler.non_package().has_value());
  }
}

TEST_CASE("a machine without any meter has no power, and that is no error") {
  FakeHostFs sys, proc;
  proc.put("stat", "cpu  1 0 0 1 0\n");
  Sampler sampler{sys, proc};
  sampler.sample({}, TimePoint{}, MonotonicPoint{seconds{1}});
  proc.put("stat", "cpu  2 0 0 2 0\n");
  const auto sample = sampler.sample({}, TimePoint{}, MonotonicPoint{seconds{2}});
  REQUIRE(sample);
  CHECK_FALSE(sample->power);
  CHECK((sample->source == PowerSource::none));
  CHECK(sample->utilization == Permille{500});
  CHECK(sampler.errors().empty());
}

TEST_CASE_FIXTURE(Bench,
                  "what lies outside the packages is steady under noise and follows the load") {
  sys.put("class/hwmon/hwmon3/name", "power_meter\n");
  sys.put("class/hwmon/hwmon3/power1_average", "180000000\n");
  now += seconds{60};
  second(100);
  second(100);
  CHECK_FALSE(sampler.non_package());  // too early to tell
  for (int i = 0; i < 5; ++i) second(100);
  REQUIRE(sampler.non_package());
  const Milliwatts first = *sampler.non_package();
  for (int i = 0; i < 50; ++i) {
    second(i % 2 == 0 ? 98 : 102);
    CHECK(*sampler.non_package() == first);
  }
  sys.put("class/hwmon/hwmon3/power1_average", "280000000\n");
  for (int i = 0; i < 60; ++i) second(100);
  CHECK(sampler.non_package()->count() > 165'000);
  CHECK(sampler.non_package()->count() <= 180'000);
}

TEST_CASE_FIXTURE(Bench, "what cannot be read is named and the rest still measured") {
  sys.fail_read(FakeMachine::zone_file("intel-rapl:0", "energy_uj"), EACCES);
  auto sample = second(100);
  REQUIRE(sample);
  CHECK_FALSE(sample->power);
  REQUIRE(sampler.errors().size() == 1);
  CHECK(sampler.errors().front().starts_with("energy counter of package-0"));
  proc.forget("stat");
  now += seconds{1};
  CHECK_FALSE(sampler.sample(state, TimePoint{}, now));
  CHECK(sampler.errors().back().starts_with("utilization"));
}

}  // namespace
}  // namespace kwatt::agent
