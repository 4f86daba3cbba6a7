#include <doctest/doctest.h>

#include "hardware/powercap.hpp"
#include "test/hardware/fake_machine.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const PowerZone* find(const std::vector<PowerZone>& zones, const std::string& id) {
  for (const PowerZone& zone : zones) {
    if (zone.id == id) return &zone;
  }
  return nullptr;
}

void energy_zone(FakeHostFs& fs, const std::string& id, const std::string& name,
                 std::int64_t energy = 0) {
  fs.put(FakeMachine::zone_file(id, "name"), name + "\n");
  fs.put(FakeMachine::zone_file(id, "energy_uj"), std::to_string(energy) + "\n");
  fs.put(FakeMachine::zone_file(id, "max_energy_range_uj"), "1000000\n");
}

void set_energy(FakeHostFs& fs, const std::string& id, std::int64_t energy) {
  fs.put(FakeMachine::zone_file(id, "energy_uj"), std::to_string(energy) + "\n");
}

TEST_CASE("a machine without powercap has no zones, which is not an error") {
  FakeHostFs fs;
  CHECK(read_zones(fs)->empty());
  CHECK_FALSE(package_range({}));
  CHECK(package_limit_uw({}) == 0);
}

TEST_CASE("packages, their memory and the platform are told apart") {
  FakeHostFs fs;
  FakeMachine{.packages = 2}.build(fs);
  energy_zone(fs, "intel-rapl:0:0", "dram");
  energy_zone(fs, "intel-rapl:0:1", "core");
  energy_zone(fs, "intel-rapl:2", "psys");
  const auto zones = *read_zones(fs);
  REQUIRE(zones.size() == 5);
  CHECK(find(zones, "intel-rapl:0")->kind == ZoneKind::package);
  CHECK(find(zones, "intel-rapl:0")->constraint == 0);
  CHECK(find(zones, "intel-rapl:0")->enabled);
  CHECK(find(zones, "intel-rapl:0:0")->kind == ZoneKind::dram);
  CHECK(find(zones, "intel-rapl:0:1")->kind == ZoneKind::other);
  CHECK(find(zones, "intel-rapl:2")->kind == ZoneKind::psys);
  CHECK(package_limit_uw(zones) == 400'000'000);
}

TEST_CASE("the memory-mapped duplicate of a package is not counted twice") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  energy_zone(fs, "intel-rapl-mmio:0", "package-0");
  CHECK(read_zones(fs)->size() == 1);
  FakeHostFs only_mmio;
  energy_zone(only_mmio, "intel-rapl-mmio:0", "package-0");
  CHECK(read_zones(only_mmio)->size() == 1);
}

TEST_CASE("the long-term limit is found by its name, whatever its number") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  fs.put(FakeMachine::zone_file("intel-rapl:0", "constraint_0_name"), "short_term\n");
  fs.put(FakeMachine::zone_file("intel-rapl:0", "constraint_1_name"), "long_term\n");
  const auto zones = *read_zones(fs);
  CHECK(zones.front().constraint == 1);
  CHECK(zones.front().limit_uw == 250'000'000);
}

TEST_CASE("zones without a limit, as AMD's, are meters only") {
  FakeHostFs fs;
  energy_zone(fs, "intel-rapl:0", "package-0");
  const auto zones = *read_zones(fs);
  CHECK(zones.front().constraint == -1);
  CHECK_FALSE(package_range(zones));
  CHECK(limit_changes(zones.front(), 1, true, 0).empty());
}

TEST_CASE("the range of caps comes from the hardware, or is derived and says how") {
  PowerZone zone{.id = "intel-rapl:0",
                 .name = "package-0",
                 .kind = ZoneKind::package,
                 .energy_range_uj = 1,
                 .constraint = 0,
                 .limit_uw = 150'000'000,
                 .min_uw = 0,
                 .max_uw = 0,
                 .enabled = true};
  CHECK(package_range({zone})->max_uw == 150'000'000);
  CHECK(package_range({zone})->min_uw == 15'000'000);
  zone.max_uw = 200'000'000;
  zone.min_uw = 60'000'000;
  CHECK(package_range({zone, zone})->max_uw == 400'000'000);
  CHECK(package_range({zone, zone})->min_uw == 120'000'000);
  CHECK(package_range({zone, zone})->packages == 2);
  zone.enabled = false;  // not limited at all
  CHECK(package_limit_uw({zone}) == 200'000'000);
}

TEST_CASE("a limit is written, rounded by the hardware, and accepted at reading back") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  const auto before = read_zones(fs)->front();
  const auto writes = limit_changes(before, 100'100'000, true, 0);
  REQUIRE(writes.size() == 1);
  CHECK(perform(fs, writes.front()));
  const auto after = read_zones(fs)->front();
  CHECK(after.limit_uw == 100'000'000);
  CHECK(limit_changes(after, 100'100'000, true, kLimitTolerance_uw).empty());
  const auto off = limit_changes(after, 100'000'000, false, 0);
  REQUIRE(off.size() == 1);
  CHECK(off.front().path == FakeMachine::zone_file("intel-rapl:0", "enabled"));
  CHECK(off.front().value == "0");
}

TEST_CASE("a limit that the firmware has locked is named so") {
  FakeHostFs fs;
  FakeMachine{}.build(fs);
  fs.fail_write(FakeMachine::zone_file("intel-rapl:0", "constraint_0_power_limit_uw"), ENODATA);
  const auto zone = read_zones(fs)->front();
  const auto write = limit_changes(zone, 100'000'000, true, 0).front();
  const auto done = perform(fs, write);
  REQUIRE_FALSE(done);
  CHECK(explain_limit_error(done.error(), write).message ==
        "the firmware has locked the power limit of package-0");
}

TEST_CASE("energy counters wrap once, and impossible readings give nothing") {
  struct Case {
    const char* name;
    std::int64_t before, after, range;
    std::optional<std::int64_t> energy;
  };
  const Case cases[] = {
      {"forward", 100, 250, 1000, 150},          {"standing still", 100, 100, 1000, 0},
      {"wrapped", 900, 50, 1000, 150},           {"fell without a range", 900, 50, 0, std::nullopt},
      {"outside", 2000, 50, 1000, std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(energy_between(c.before, c.after, c.range) == c.energy);
  }
}

TEST_CASE("power is the energy between two samples") {
  FakeHostFs fs;
  energy_zone(fs, "intel-rapl:0", "package-0", 990'000);
  energy_zone(fs, "intel-rapl:1", "package-1", 0);
  energy_zone(fs, "intel-rapl:0:0", "dram", 0);
  const auto zones = *read_zones(fs);
  EnergyMeter meter;
  MonotonicPoint now{seconds{100}};
  CHECK(*meter.sample(fs, zones, now) == EnergyMeter::Reading{});
  set_energy(fs, "intel-rapl:0", 40'000);  // wrapped: 50,000 µJ
  set_energy(fs, "intel-rapl:1", 100'000);
  set_energy(fs, "intel-rapl:0:0", 10'000);
  now += milliseconds{500};
  const auto reading = *meter.sample(fs, zones, now);
  CHECK(reading.packages == Milliwatts{300});
  CHECK(reading.dram == Milliwatts{20});
  CHECK_FALSE(reading.psys);
}

TEST_CASE("a zone that comes or goes with its package does not make half a reading") {
  FakeHostFs fs;
  energy_zone(fs, "intel-rapl:0", "package-0", 0);
  energy_zone(fs, "intel-rapl:1", "package-1", 0);
  const auto both = *read_zones(fs);
  fs.forget(FakeMachine::zone_file("intel-rapl:1", "energy_uj"));
  fs.forget(FakeMachine::zone_file("intel-rapl:1", "name"));
  CHECK(read_zones(fs)->size() == 1);
  EnergyMeter meter;
  MonotonicPoint now{seconds{100}};
  REQUIRE(meter.sample(fs, both, now));  // it went after the zones were read
  set_energy(fs, "intel-rapl:0", 50'000);
  CHECK(meter.sample(fs, both, now + milliseconds{500})->packages == Milliwatts{100});
  energy_zone(fs, "intel-rapl:1", "package-1", 0);
  set_energy(fs, "intel-rapl:0", 100'000);
  CHECK_FALSE(meter.sample(fs, both, now + milliseconds{1000})->packages);
  set_energy(fs, "intel-rapl:0", 150'000);
  set_energy(fs, "intel-rapl:1", 50'000);
  CHECK(meter.sample(fs, both, now + milliseconds{1500})->packages == Milliwatts{200});
}

TEST_CASE("a long gap, a jump and a missing counter give no power rather than a wrong one") {
  FakeHostFs fs;
  energy_zone(fs, "intel-rapl:0", "package-0", 0);
  fs.put(FakeMachine::zone_file("intel-rapl:0", "max_energy_range_uj"), "262143328850\n");
  const auto zones = *read_zones(fs);
  EnergyMeter meter;
  MonotonicPoint now{seconds{100}};
  REQUIRE(meter.sample(fs, zones, now));
  SUBCASE("after more than a minute a wrap may have gone unseen") {
    CHECK(*meter.sample(fs, zones, now + seconds{61}) == EnergyMeter::Reading{});
  }
  SUBCASE("more than 10 kW in one zone") {
    set_energy(fs, "intel-rapl:0", 10'000'000'001);
    CHECK(*meter.sample(fs, zones, now + seconds{1}) == EnergyMeter::Reading{});
    set_energy(fs, "intel-rapl:0", 10'000'000'002);
    CHECK(*meter.sample(fs, zones, now + seconds{2}) == EnergyMeter::Reading{});
    set_energy(fs, "intel-rapl:0", 10'150'000'002);
    CHECK(meter.sample(fs, zones, now + seconds{3})->packages == watts(150));
  }
  SUBCASE("a counter only root may read") {
    fs.fail_read(FakeMachine::zone_file("intel-rapl:0", "energy_uj"), EACCES);
    CHECK(meter.sample(fs, zones, now + seconds{1}).error().code == ErrorCode::forbidden);
  }
}

}  // namespace
}  // namespace kwatt::hardware
