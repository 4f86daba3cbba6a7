#include <doctest/doctest.h>

#include "test/simulator/room.hpp"

namespace kwatt::simulator::test {
namespace {

std::int64_t millijoules(Machine& m, Duration at) {
  m.settle(at.count(), 0);
  return m.account().energy.units;
}

TEST_SUITE("simulator") {
  TEST_CASE("machine: energy is the curve's power times the time, to the millijoule") {
    const MachineSpec spec = machine("m");
    Machine m(spec);
    CHECK(millijoules(m, 1h) == 360'000'000);  // 100 W idle
    m.change_busy(Millicores{2000}, {});
    CHECK(m.power() == watts(150));
    CHECK(millijoules(m, 1h + 1ms) == 360'000'150);
    m.change_busy(Millicores{2000}, {});
    CHECK(millijoules(m, 1h + 1ms + 10s) == 360'000'150 + 2'000'000);
  }

  TEST_CASE("machine: a boot and a shutdown take their energy, whatever rounding does to power") {
    MachineSpec spec = machine("m");
    spec.starts_off = true;
    spec.power.boot = 7s;  // 9 kJ over 7 s is no whole number of milliwatts
    Machine m(spec);
    CHECK(millijoules(m, 100s) == 500'000);  // standby
    m.begin_boot();
    CHECK(m.power() == Milliwatts{1'285'714});
    m.settle((107s).count() * 1000, 0);
    m.end_boot();
    CHECK(m.account().energy.units == 500'000 + 9'000'000);
    m.begin_shutdown();
    CHECK(millijoules(m, 117s) == 500'000 + 9'000'000 + 1'000'000);
    m.end_shutdown();
    CHECK(m.account().boots == 1);
    CHECK(m.account().shutdowns == 1);
    CHECK(m.account().on_ms == 0);
  }

  TEST_CASE("machine: transitions without time cost their energy at once") {
    MachineSpec spec = machine("m");
    spec.starts_off = true;
    spec.power.boot = 0s;
    Machine m(spec);
    m.begin_boot();
    m.end_boot();
    CHECK(m.account().energy.units == 9'000'000);
  }

  TEST_CASE("machine: at half its frequency it is half as fast and draws by the cubic model") {
    const MachineSpec spec = machine("m");
    Machine m(spec);
    m.change_busy(Millicores{4000}, {});
    m.limit_frequency(1000);
    CHECK(m.speed() == percent(50));
    CHECK(m.power() == Milliwatts{127'500});  // 100 + 100 × (0.4/2 + 0.6/8)
    CHECK(m.utilization() == percent(50));
    CHECK(m.busy() == percent(100));
    m.limit_frequency(100);  // below the hardware's least
    CHECK(m.speed() == percent(50));
    m.limit_frequency(0);
    CHECK(m.power() == watts(200));
  }

  TEST_CASE("machine: services keep slower cores busy for longer and are short of nothing") {
    const MachineSpec spec = machine("m");
    Machine m(spec);
    m.change_busy({}, Millicores{1000});
    m.limit_frequency(1000);
    CHECK(m.busy() == percent(50));
    CHECK(m.utilization() == percent(25));
    m.settle(1000, 0);
    CHECK(m.account().overload_ms == 0);
    m.change_busy({}, Millicores{2000});
    m.settle(2000, 0);
    CHECK(m.account().overload_ms == 1000);
  }

  TEST_CASE("machine: a cap is held by frequency, as far as that goes") {
    struct Case {
      const char* name;
      std::int64_t cap, speed, milliwatts;
    };
    const Case cases[] = {
        {"none", 0, 1000, 200'000},
        {"above what it draws", 250, 1000, 200'000},
        {"at the first step that fits", 180, 900, 179'700},
        {"below what the lowest frequency draws", 60, 500, 127'500},
    };
    for (const Case& c : cases) {
      CAPTURE(c.name);
      const MachineSpec spec = machine("m");
      Machine m(spec);
      m.change_busy(Millicores{4000}, {});
      m.cap(c.cap);
      CHECK(m.speed() == Permille{c.speed});
      CHECK(m.power() == Milliwatts{c.milliwatts});
    }
  }

  TEST_CASE("machine: carbon is energy times the intensity at the time") {
    const MachineSpec spec = machine("m");
    Machine m(spec);
    m.settle((1h).count() * 3'600'000, 500);
    CHECK(m.account().grams_co2 == doctest::Approx(50));  // 0.1 kWh
    m.settle((2h).count() * 3'600'000, 100);
    CHECK(m.account().grams_co2 == doctest::Approx(60));
  }
}

}  // namespace
}  // namespace kwatt::simulator::test
