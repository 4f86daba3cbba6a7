// The consolidation experiment on PlanetLab's data, or on made-up loads where that is not there.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <doctest/doctest.h>

#include "planner/consolidation/named.hpp"
#include "planner/consolidation/steady.hpp"
#include "simulator/consolidation/lower_bound.hpp"
#include "simulator/consolidation/setups.hpp"
#include "simulator/traces/planetlab.hpp"
#include "test/support/source_dir.hpp"

using namespace kwatt;
using namespace kwatt::planner::consolidation;
using namespace kwatt::simulator::consolidation;
using kwatt::simulator::traces::Series;

namespace {

// Loads that drift and jump, by seed; some VMs end.
Series made_up(std::size_t vms, std::size_t samples, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto share = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Series series;
  series.samples = samples;
  series.values.resize(vms * samples);
  for (std::size_t v = 0; v < vms; ++v) {
    series.names.push_back("vm" + std::to_string(1000 + v));
    double level = 0.05 + 0.3 * share();
    const bool ends = share() < 0.1;
    for (std::size_t k = 0; k < samples; ++k) {
      if (share() < 0.05) level = 0.02 + 0.6 * share() * share();
      const double value = std::clamp(level + 0.1 * (share() - 0.5), 0.0, 1.0);
      series.values[k * vms + v] = ends && k > samples / 2 ? 0 : std::round(100 * value) / 100;
    }
  }
  return series;
}

struct Step {
  double seconds = 0;
  std::vector<Move> moves;
  bool operator==(const Step&) const = default;
};

struct Outcome {
  Metrics metrics;
  std::vector<Step> steps;
};

Outcome run_named(std::string_view name, const Setup& setup, const Series& cpu) {
  auto policy = policy_named(name);
  REQUIRE(policy.has_value());
  Outcome outcome;
  const auto run = kwatt::simulator::consolidation::run(
      setup, cpu, nullptr, **policy,
      [&](double seconds, const Fleet&, const std::vector<Move>& moves) {
        outcome.steps.push_back({seconds, moves});
      });
  REQUIRE(run.has_value());
  outcome.metrics = *run;
  return outcome;
}

Setup small(std::size_t vms, std::size_t samples) {
  Setup setup = planetlab_setup(vms, 60);
  setup.seconds = 300.0 * static_cast<double>(samples);
  return setup;
}

}  // namespace

TEST_CASE("two runs are alike, decision by decision") {
  const Series cpu = made_up(60, 40, 3);
  for (const std::string_view name : policy_names()) {
    CAPTURE(name);
    const Outcome first = run_named(name, small(60, 40), cpu);
    const Outcome second = run_named(name, small(60, 40), cpu);
    CHECK(first.metrics == second.metrics);
    CHECK(first.steps == second.steps);
  }
}

TEST_CASE("no policy sees the future: what comes later does not change what was decided") {
  constexpr std::size_t kSamples = 40;
  const Series cpu = made_up(60, kSamples, 5);
  for (const std::size_t changed : {2, 11, 25}) {
    // A decision at k steps and a tick knows a three-thousandth of sample k + 1, by interpolation:
    // samples from k + 2 on are unknown.
    Series other = cpu;
    const Series more = made_up(60, kSamples, 6);
    std::copy(more.values.begin() + static_cast<std::ptrdiff_t>((changed + 2) * 60),
              more.values.end(),
              other.values.begin() + static_cast<std::ptrdiff_t>((changed + 2) * 60));
    for (const std::string_view name : policy_names()) {
      CAPTURE(name);
      CAPTURE(changed);
      const Outcome first = run_named(name, small(60, kSamples), cpu);
      const Outcome second = run_named(name, small(60, kSamples), other);
      for (std::size_t step = 0; step < changed; ++step) {
        CHECK(first.steps[step] == second.steps[step]);
      }
      if (name != "dvfs") CHECK(first.steps != second.steps);
    }
  }
}

TEST_CASE("what a policy sees of the past ends now") {
  const Series cpu = made_up(20, 10, 8);
  Steady policy;
  std::size_t step = 0;
  const auto run = kwatt::simulator::consolidation::run(
      small(20, 10), cpu, nullptr, policy, [&](double, const Fleet& fleet, const auto&) {
        ++step;
        for (const Vm& vm : fleet.vms) {
          if (vm.host == kNone) continue;
          CHECK(vm.past.size() == step);
          CHECK(vm.past.back() * vm.cpu == vm.demand);
        }
      });
  REQUIRE(run.has_value());
  CHECK(step == 9);
}

TEST_CASE("after every decision each VM is on one host, and hosts agree") {
  const Series cpu = made_up(80, 30, 9);
  for (const std::string_view name : {"kwatt", "lr-mmt-1.2"}) {
    auto policy = policy_named(name);
    REQUIRE(policy.has_value());
    Setup setup = small(80, 30);
    setup.fleet.kinds[0].boot_seconds = 280;  // migrations last beyond the next decision
    const auto run = kwatt::simulator::consolidation::run(
        setup, cpu, nullptr, **policy, [&](double, const Fleet& fleet, const auto& moves) {
          std::vector<std::size_t> homes(fleet.vms.size());
          for (std::uint32_t h = 0; h < fleet.hosts.size(); ++h) {
            for (const std::uint32_t vm : fleet.hosts[h].vms) {
              homes[vm] += fleet.vms[vm].host == h ? 1 : 0;
            }
          }
          for (std::size_t v = 0; v < homes.size(); ++v) {
            CHECK(homes[v] == (fleet.vms[v].host == kNone ? 0 : 1));
          }
          for (const Move& move : moves) CHECK_FALSE(fleet.vms[move.vm].moving);
        });
    CHECK(run.has_value());
  }
}

TEST_CASE(
    "kwatt's policy needs less of everything than the heuristics, and not less than is possible") {
  for (const std::uint64_t seed : {21, 22}) {
    const Series cpu = made_up(100, 96, seed);
    const Setup setup = small(100, 96);
    const Metrics ours = run_named("kwatt", setup, cpu).metrics;
    const Metrics theirs = run_named("lr-mmt-1.2", setup, cpu).metrics;
    CHECK(ours.energy_joules < 0.85 * theirs.energy_joules);
    CHECK(static_cast<double>(ours.migrations) < 0.25 * static_cast<double>(theirs.migrations));
    CHECK(ours.esv() < 0.3 * theirs.esv());
    CHECK(ours.energy_joules > 0.95 * lower_bound_joules(setup.fleet, cpu, nullptr));
  }
}

TEST_CASE("a day of PlanetLab costs what CloudSim 3.0.3 says") {
  const std::string name =
      test::source_path("../shared/data/planetlab/20110306.csv");  // the smallest
  if (!std::filesystem::exists(name)) {
    MESSAGE("not checked, the data is not here: " << name);
    return;
  }
  std::ifstream in(name);
  const auto cpu = kwatt::simulator::traces::read_planetlab(in, name);
  REQUIRE(cpu.has_value());
  REQUIRE(cpu->columns() == 898);
  Setup setup = planetlab_setup(cpu->columns());
  setup.start = Start::first_fit;
  const Metrics still = run_named("dvfs", setup, *cpu).metrics;
  CHECK(still.energy_kwh() == doctest::Approx(625.53).epsilon(1e-5));
  CHECK(still.shutdowns == 544);
  setup.start = Start::power_aware;
  const Metrics lr = run_named("lr-mmt-1.2", setup, *cpu).metrics;
  CHECK(lr.energy_kwh() == doctest::Approx(123.28).epsilon(1e-4));
  CHECK(lr.migrations == 20878);
  CHECK(lr.shutdowns == 4018);
  CHECK(lr.slav() == doctest::Approx(0.0000462).epsilon(0.002));
}
