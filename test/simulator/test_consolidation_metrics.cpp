// Metrics and energy worked out by hand.
#include <cmath>

#include <doctest/doctest.h>

#include "simulator/consolidation/experiment.hpp"
#include "simulator/consolidation/lower_bound.hpp"
#include "simulator/consolidation/metrics.hpp"

using namespace kwatt;
using namespace kwatt::planner::consolidation;
using namespace kwatt::simulator::consolidation;
using kwatt::simulator::traces::Series;

namespace {

Series constant(std::size_t vms, std::size_t samples, double value) {
  Series series;
  for (std::size_t v = 0; v < vms; ++v) series.names.push_back("vm" + std::to_string(v));
  series.samples = samples;
  series.values.assign(vms * samples, value);
  return series;
}

// Two hosts of one core of 1,000 from 100 to 200 W; 10 MB a second.
Setup two_hosts(std::size_t vms, double cpu = 500) {
  Setup setup;
  HostKind kind;
  kind.core_cpu = 1000;
  kind.memory = 1000;
  kind.copy_per_second = 10;
  for (std::size_t i = 0; i <= 10; ++i) kind.watts.points[i] = 100 + 10 * static_cast<double>(i);
  setup.fleet.kinds = {kind};
  setup.fleet.hosts.resize(2);
  Vm vm;
  vm.cpu = cpu;
  vm.memory = 300;
  setup.fleet.vms.assign(vms, vm);
  setup.start = Start::first_fit;
  setup.seconds = 1000;  // decisions at 300.1, 600.1 and 900.1
  return setup;
}

// Moves one VM at the first decision.
class Once : public Policy {
 public:
  explicit Once(Move move) : move_(move) {}
  std::vector<Move> decide(const Fleet&) override {
    if (done_) return {};
    done_ = true;
    return {move_};
  }

 private:
  Move move_;
  bool done_ = false;
};

}  // namespace

TEST_CASE("the meter: time with too little, work not done in migration, shutdowns") {
  Meter meter(2, 2);
  meter.host(0, 0, 10, 10, true);
  meter.host(0, 100, 8, 10, true);   // lacks from here
  meter.host(0, 100, 7, 10, true);   // replaces it
  meter.host(0, 150, 0, 0, false);   // off
  meter.host(0, 200, 10, 10, true);  // on again
  meter.host(0, 300, 10, 10, true);
  meter.host(1, 0, 0, 0, false);  // never on: counted as one shutdown, as CloudSim does
  meter.host(1, 300, 0, 0, false);
  meter.vm(0, 0, 9, 10, true);
  meter.vm(0, 100, 9, 10, false);
  meter.vm(0, 200, 10, 10, false);
  meter.vm(1, 0, 10, 10, true);
  meter.vm(1, 200, 10, 10, false);
  meter.finish();
  const Metrics& m = meter.metrics;
  CHECK(m.active_seconds == 250);
  CHECK(m.lacking_seconds == 50);
  CHECK(m.slatah() == doctest::Approx(0.2));
  CHECK(m.requested_cpu_seconds == 4000);
  CHECK(m.lacking_in_move == 100);
  CHECK(m.lacking_cpu_seconds == 200);
  CHECK(m.pdm() == doctest::Approx(0.025));
  CHECK(m.slav() == doctest::Approx(0.005));
  CHECK(m.lacking() == doctest::Approx(0.05));
  CHECK(m.shutdowns == 2);
  CHECK(m.wakes == 1);
}

TEST_CASE("nothing measured is nothing lacking") {
  const Metrics none;
  CHECK(none.slav() == 0);
  CHECK(none.esv() == 0);
  CHECK(none.lacking() == 0);
}

TEST_CASE("energy of hosts at constant load, the first step free") {
  // Both VMs on host 0 at half their size: 500 of 1,000, 150 W from 300.1 to 900.1 s.
  class Nothing : public Policy {
    std::vector<Move> decide(const Fleet&) override { return {}; }
  } nothing;
  const auto run =
      kwatt::simulator::consolidation::run(two_hosts(2), constant(2, 5, 0.5), nullptr, nothing);
  REQUIRE(run.has_value());
  CHECK(run->energy_joules == doctest::Approx(150 * 600));
  CHECK(run->energy_kwh() == doctest::Approx(0.025));
  CHECK(run->migrations == 0);
  CHECK(run->slatah() == 0);
  CHECK(run->requested_cpu_seconds == doctest::Approx(500 * 600));
}

TEST_CASE("a migration: 30 s at nine tenths, a tenth held by the target") {
  Once policy({1, 1});
  const auto run =
      kwatt::simulator::consolidation::run(two_hosts(2), constant(2, 5, 0.5), nullptr, policy);
  REQUIRE(run.has_value());
  CHECK(run->migrations == 1);
  // Source 150 W, target at 25 of 1,000 102.5 W for 30 s, and at the end of those the look before
  // the landing sees the same; then 125 W each for 570 s.
  CHECK(run->energy_joules == doctest::Approx((150 + 102.5) * 30 + 2 * 125 * 570));
  CHECK(run->lacking_in_move == doctest::Approx(25 * 30));
  CHECK(run->pdm() == doctest::Approx(25 * 30 / (500.0 * 600)));
  // The target counts as lacking while it holds a tenth; the source gives what is asked.
  CHECK(run->lacking_seconds == doctest::Approx(30));
  CHECK(run->active_seconds == doctest::Approx(600 + 600));
  CHECK(run->shutdowns == 0);
}

TEST_CASE("a woken host pays its boot, and receives after it") {
  Setup setup = two_hosts(2);
  setup.fleet.kinds[0].boot_seconds = 60;
  setup.fleet.kinds[0].boot_joules = 5000;
  Once policy({1, 1});
  const auto run =
      kwatt::simulator::consolidation::run(setup, constant(2, 5, 0.5), nullptr, policy);
  REQUIRE(run.has_value());
  CHECK(run->energy_joules ==
        doctest::Approx(5000 + 150 * 60 + (150 + 102.5) * 30 + 2 * 125 * 510));
  CHECK(run->lacking_in_move == doctest::Approx(25 * 30));
}

TEST_CASE("more than a host has is divided, rounded down") {
  // VMs 0 and 1 on host 0, 2 and 3 on host 1, all at full load; VM 2 comes to host 0 in 30 s.
  Once policy({2, 0});
  const auto run =
      kwatt::simulator::consolidation::run(two_hosts(4), constant(4, 5, 1.0), nullptr, policy);
  REQUIRE(run.has_value());
  // On the way: 500 + 500 + 50 of 1,000, so 476 each, and 450 on the source. Then a third each,
  // 333.
  CHECK(run->lacking_cpu_seconds == doctest::Approx((24 + 24 + 50) * 30 + 3 * 167 * 570));
}

TEST_CASE("a VM that wants nothing for a step has ended") {
  Setup setup = two_hosts(2);
  Series cpu = constant(2, 5, 0.5);
  for (std::size_t k = 1; k < 5; ++k) cpu.values[k * 2 + 1] = 0;
  Once policy({0, 1});
  std::vector<std::uint32_t> hosts;
  const auto run = kwatt::simulator::consolidation::run(
      setup, cpu, nullptr, policy,
      [&](double, const Fleet& fleet, const auto&) { hosts.push_back(fleet.vms[1].host); });
  REQUIRE(run.has_value());
  CHECK(hosts == std::vector<std::uint32_t>{kNone, kNone, kNone});
}

TEST_CASE("memory that is wanted beyond the host's counts as lacking") {
  const Series cpu = constant(2, 5, 0.5);
  Setup setup = two_hosts(2);
  setup.fleet.kinds[0].memory = 600;
  class Nothing : public Policy {
    std::vector<Move> decide(const Fleet&) override { return {}; }
  } nothing;
  const Series all = constant(2, 5, 1.0), more = constant(2, 5, 1.1);
  const auto fits = kwatt::simulator::consolidation::run(setup, cpu, &all, nothing);
  const auto lacks = kwatt::simulator::consolidation::run(setup, cpu, &more, nothing);
  REQUIRE(fits.has_value());
  REQUIRE(lacks.has_value());
  CHECK(fits->slatah() == 0);
  CHECK(lacks->slatah() == 1);
}

TEST_CASE("what cannot run is refused with a reason") {
  class Nothing : public Policy {
    std::vector<Move> decide(const Fleet&) override { return {}; }
  } nothing;
  const auto refused = [&](const Setup& setup, const Series& cpu, Policy& policy,
                           const char* want) {
    const auto run = kwatt::simulator::consolidation::run(setup, cpu, nullptr, policy);
    REQUIRE(run.has_error());
    INFO(run.error().message);
    CHECK(run.error().code == ErrorCode::invalid_argument);
    CHECK(run.error().message.find(want) == 0);
  };
  refused(two_hosts(1, 1001), constant(1, 5, 0.5), nothing, "VM 0 of 1001 CPU and 300 memory fits");
  refused(two_hosts(5), constant(5, 5, 0.5), nothing, "VM 4 of 500 CPU");
  refused(two_hosts(2), constant(3, 5, 0.5), nothing, "3 columns in a trace for 2 VMs");
  for (const Move move : {Move{7, 1}, Move{0, 9}, Move{0, 0}}) {
    Once policy(move);
    refused(two_hosts(2), constant(2, 5, 0.5), policy, "the policy moves VM");
  }
}

TEST_CASE("the lower bound fills the most efficient hosts") {
  const Setup setup = two_hosts(2);
  // 500 of 1,000 at 200 W: 100 W for three steps of 300 s.
  CHECK(lower_bound_joules(setup.fleet, constant(2, 5, 0.5), nullptr) ==
        doctest::Approx(100 * 900));
  // Memory: 600 of 1,000 at 100 W idle; with little CPU it counts.
  const Series full = constant(2, 5, 1.0);
  CHECK(lower_bound_joules(setup.fleet, constant(2, 5, 0.1), &full) == doctest::Approx(60 * 900));
}
