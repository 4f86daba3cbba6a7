// The consolidation policies: each decision in a table.
#include <cmath>

#include <doctest/doctest.h>

#include "planner/consolidation/adaptive_threshold.hpp"
#include "planner/consolidation/best_fit.hpp"
#include "planner/consolidation/heuristic.hpp"
#include "planner/consolidation/local_regression.hpp"
#include "planner/consolidation/named.hpp"
#include "planner/consolidation/static_threshold.hpp"
#include "planner/consolidation/steady.hpp"

using namespace kwatt;
using namespace kwatt::planner::consolidation;

namespace {

// A line from 100 W idle to 200 W; two cores of 1,000.
HostKind line_kind() {
  HostKind kind;
  kind.cores = 2;
  kind.core_cpu = 1000;
  kind.memory = 4096;
  kind.copy_per_second = 62.5;
  for (std::size_t i = 0; i <= 10; ++i) kind.watts.points[i] = 100 + 10 * static_cast<double>(i);
  return kind;
}

// The same, but the fuller, the less a VM more costs: no two choices cost the same.
HostKind bent_kind() {
  HostKind kind = line_kind();
  for (std::size_t i = 0; i <= 10; ++i) kind.watts.points[i] -= 0.3 * static_cast<double>(i * i);
  return kind;
}

struct Stage {
  Fleet fleet;
  std::vector<std::vector<double>> pasts;

  explicit Stage(std::size_t hosts) {
    fleet.kinds = {bent_kind()};
    fleet.hosts.resize(hosts);
    pasts.reserve(100);
  }
  // A VM of size 1,000 that wants `demand` and always did.
  std::uint32_t vm(std::uint32_t host, double demand, double memory = 1000,
                   std::size_t samples = 30) {
    return vm(host, std::vector<double>(samples, demand / 1000), demand, memory);
  }
  std::uint32_t vm(std::uint32_t host, std::vector<double> past, double demand,
                   double memory = 1000) {
    pasts.push_back(std::move(past));
    Vm vm;
    vm.cpu = 1000;
    vm.memory = memory;
    vm.demand = demand;
    vm.host = host;
    vm.past = pasts.back();
    fleet.vms.push_back(vm);
    const auto index = static_cast<std::uint32_t>(fleet.vms.size() - 1);
    fleet.hosts[host].vms.push_back(index);
    fleet.hosts[host].used += demand;
    return index;
  }
};

std::vector<double> ramp(double from, double step, std::size_t n) {
  std::vector<double> past;
  for (std::size_t i = 0; i < n; ++i) past.push_back(from + step * static_cast<double>(i));
  return past;
}

}  // namespace

TEST_CASE("a curve is linear between its points and holds its ends") {
  const Watts watts = line_kind().watts;
  for (const auto& [load, want] : std::vector<std::pair<double, double>>{
           {-1, 100}, {0, 100}, {0.05, 105}, {0.1, 110}, {0.75, 175}, {1, 200}, {2, 200}}) {
    CAPTURE(load);
    CHECK(watts.at(load) == doctest::Approx(want));
  }
}

TEST_CASE("detectors of overload") {
  struct Case {
    const char* name;
    std::vector<double> past;
    double demand;
    bool thr, iqr, mad, lr;
  };
  std::vector<double> jumps;
  for (int i = 0; i < 30; ++i) jumps.push_back(i % 2 == 0 ? 0.3 : 0.9);
  const Case cases[] = {
      {"steady and low", ramp(0.5, 0, 30), 500, false, false, false, false},
      {"steady at 90 %: no spread, and 1.2 × 0.9 is too much for LR", ramp(0.9, 0, 30), 900, true,
       false, false, true},
      {"steady at 82 %", ramp(0.82, 0, 30), 820, true, false, false, false},
      {"rising to 75 %: the line reaches 83 %", ramp(0.0, 0.75 / 29, 30), 750, false, true, true,
       false},
      {"rising steeply", ramp(0.0, 0.08, 11), 800, false, true, true, true},
      {"jumping between 30 and 90 %", jumps, 500, false, true, true, false},
      {"too few samples: 0.7 holds", ramp(0.72, 0, 5), 720, false, true, true, true},
      {"too few samples, little load", ramp(0.6, 0, 5), 600, false, false, false, false},
  };
  for (const Case& c : cases) {
    SUBCASE(c.name) {
      Stage stage(1);
      stage.fleet.kinds[0].cores = 1;
      stage.vm(0, c.past, c.demand);
      const Draft draft(stage.fleet);
      const auto judge = [&](const OverloadRule& rule) {
        return rule.overloaded(draft, draft.host(0), kNone);
      };
      CHECK(judge(StaticThreshold(0.8)) == c.thr);
      CHECK(judge(AdaptiveThreshold(interquartile_range, 1.5)) == c.iqr);
      CHECK(judge(AdaptiveThreshold(median_absolute_deviation, 2.5)) == c.mad);
      CHECK(judge(LocalRegression(1.2)) == c.lr);
    }
  }
}

TEST_CASE("an empty host is never overloaded") {
  const Stage stage(1);
  const Draft draft(stage.fleet);
  CHECK_FALSE(StaticThreshold(0.8).overloaded(draft, draft.host(0), kNone));
  CHECK_FALSE(LocalRegression(1.2).overloaded(draft, draft.host(0), kNone));
  CHECK_FALSE(AdaptiveThreshold(interquartile_range, 1.5).overloaded(draft, draft.host(0), kNone));
}

TEST_CASE("spreads of 1..12") {
  History samples{};
  for (std::size_t i = 0; i < 12; ++i) samples[i] = static_cast<double>(12 - i);
  History other = samples;
  CHECK(interquartile_range(samples, 12) == doctest::Approx(7));  // the 10th less the 3rd
  CHECK(median_absolute_deviation(other, 12) == doctest::Approx(3));
}

TEST_CASE("which VM leaves") {
  Stage stage(1);
  std::vector<double> wave, same, other;
  for (int i = 0; i < 30; ++i) {
    wave.push_back(0.2 + 0.1 * std::sin(i));
    same.push_back(0.3 + 0.2 * std::sin(i) + 0.001 * (i % 7));
    other.push_back(0.2 + 0.01 * ((i * 7) % 11));
  }
  const std::uint32_t little_cpu = stage.vm(0, other, 100, 900);
  const std::uint32_t little_memory = stage.vm(0, wave, 300, 500);
  const std::uint32_t correlated = stage.vm(0, same, 200, 700);
  const Draft draft(stage.fleet);
  CHECK(MinimumMigrationTime().select(draft, draft.host(0)) == little_memory);
  CHECK(MinimumUtilization().select(draft, draft.host(0)) == little_cpu);
  const std::uint32_t by_correlation = MaximumCorrelation().select(draft, draft.host(0));
  // The two waves explain one another; the third VM goes its own way.
  CHECK(by_correlation != little_cpu);
  CHECK((by_correlation == correlated || by_correlation == little_memory));
  RandomSelection first(7), second(7);
  for (int i = 0; i < 10; ++i) {
    CHECK(first.select(draft, draft.host(0)) == second.select(draft, draft.host(0)));
  }
  for (Vm& vm : stage.fleet.vms) vm.moving = true;
  CHECK(MinimumMigrationTime().select(draft, draft.host(0)) == kNone);
  CHECK(RandomSelection(1).select(draft, draft.host(0)) == kNone);
  CHECK(MaximumCorrelation().select(draft, draft.host(0)) == kNone);
}

TEST_CASE("correlation that cannot be calculated leaves the choice to the least memory") {
  Stage stage(1);
  stage.vm(0, 200, 900);  // it never changed
  const std::uint32_t small = stage.vm(0, 300, 500);
  const Draft draft(stage.fleet);
  CHECK(MaximumCorrelation().select(draft, draft.host(0)) == small);
}

TEST_CASE("a draft divides a host as the time-shared scheduler does") {
  Stage stage(2);
  stage.vm(0, 900);
  stage.vm(0, 900);
  const std::uint32_t third = stage.vm(0, 900);
  Draft draft(stage.fleet);
  CHECK(draft.host(0).requested == 2700);
  CHECK(draft.host(0).handed_out == 3 * 666);  // a third of 2,000, whole units
  CHECK(draft.host(0).free == 0);
  draft.remove(third, 0);
  CHECK(draft.host(0).handed_out == 1800);
  CHECK(draft.host(0).free == 200);
  CHECK_FALSE(draft.fits(third, 0));
  CHECK(draft.fits(third, 1));
  stage.fleet.vms[third].demand = 1001;  // more than a core
  CHECK_FALSE(draft.fits(third, 1));
}

TEST_CASE("best fit: the least increase of power; a host that is off counts with its idle power") {
  Stage stage(3);
  stage.vm(1, 500);
  const std::uint32_t placed = stage.vm(0, 300);
  Draft draft(stage.fleet);
  draft.remove(placed, 0);
  const StaticThreshold rule(0.8);
  BestFit fit(draft, rule);
  fit.exclude(0);
  CHECK(fit.place(placed) == 1);
  BestFit strict(draft, rule);
  strict.exclude(0);
  strict.exclude(1);
  CHECK(strict.place(placed) == 2);
  strict.exclude(2);
  CHECK(strict.place(placed) == kNone);
}

TEST_CASE("the published heuristic") {
  SUBCASE("relieves the overloaded host and empties the least loaded") {
    Stage stage(4);
    stage.vm(0, 900, 900);
    const std::uint32_t leaves = stage.vm(0, 850, 500);
    stage.vm(1, 600);
    const std::uint32_t lonely = stage.vm(2, 100);
    Heuristic policy(std::make_unique<StaticThreshold>(0.8),
                     std::make_unique<MinimumMigrationTime>());
    const std::vector<Move> want = {{leaves, 1}, {lonely, 1}};
    CHECK(policy.decide(stage.fleet) == want);
  }
  SUBCASE("does nothing where nothing can be gained") {
    Stage stage(2);
    stage.vm(0, 900);
    stage.vm(1, 900);
    Heuristic policy(std::make_unique<StaticThreshold>(0.8),
                     std::make_unique<MinimumMigrationTime>());
    CHECK(policy.decide(stage.fleet).empty());
  }
}

TEST_CASE("policies have names") {
  for (const std::string_view name : policy_names()) {
    CAPTURE(name);
    CHECK(policy_named(name).has_value());
  }
  for (const char* wrong : {"", "lr", "lr-mmt", "lr-mmt-", "lr-mmt-x", "lr-mmt-0", "lr-mmt-11",
                            "lr-mmt-1.2-3", "abc-mmt-1", "lr-abc-1", "lr-mmt-nan"}) {
    CAPTURE(wrong);
    const auto policy = policy_named(wrong);
    REQUIRE(policy.has_error());
    CHECK(policy.error().code == ErrorCode::invalid_argument);
    CHECK(policy.error().message.find("no consolidation policy '" + std::string(wrong) + "'") == 0);
  }
}

TEST_CASE("the load at which a curve is most efficient") {
  HostKind kind = line_kind();
  CHECK(best_load(kind).load == 1);
  CHECK(best_load(kind).watts_per_cpu == doctest::Approx(0.1));
  // EPYC 7763 × 2 of 2022: 3.34 W per per cent at 80 and 70 %, 4.06 at 100 %.
  kind.watts.points = {122, 164, 182, 198, 214, 232, 249, 268, 299, 349, 406};
  CHECK(best_load(kind).load == doctest::Approx(0.8));
}

TEST_CASE("the forecast weighs what is new, and doubts what is short") {
  CHECK(recent_outlook({}).mean == 0);
  const std::vector<double> steady(24, 0.4), one = {0.4};
  CHECK(recent_outlook(steady).mean == doctest::Approx(0.4));
  CHECK(recent_outlook(steady).deviation < 0.06);
  CHECK(recent_outlook(one).mean == doctest::Approx(0.4));
  CHECK(recent_outlook(one).deviation > recent_outlook(steady).deviation);
  std::vector<double> risen(12, 0.2);
  risen.insert(risen.end(), 12, 0.6);
  CHECK(recent_outlook(risen).mean > 0.4);
  CHECK(recent_outlook(risen).deviation > 0.1);
}

TEST_CASE("kwatt's policy") {
  Steady policy;
  SUBCASE("does nothing to hosts that are well filled") {
    Stage stage(3);
    for (int i = 0; i < 4; ++i) stage.vm(0, 300);
    for (int i = 0; i < 4; ++i) stage.vm(1, 300);
    CHECK(policy.decide(stage.fleet).empty());
  }
  SUBCASE("empties a host whose VMs find room") {
    Stage stage(3);
    for (int i = 0; i < 4; ++i) stage.vm(0, 250);
    const std::uint32_t lonely = stage.vm(1, 200);
    CHECK(policy.decide(stage.fleet) == std::vector<Move>{{lonely, 0}});
  }
  SUBCASE("leaves it when the boot that may follow costs more than an hour saves") {
    Stage stage(3);
    stage.fleet.kinds[0].boot_joules = 1e6;
    for (int i = 0; i < 4; ++i) stage.vm(0, 250);
    stage.vm(1, 200);
    CHECK(policy.decide(stage.fleet).empty());
  }
  SUBCASE("relieves a host of the VM that is enough and copied with least loss") {
    Stage stage(3);
    stage.vm(0, 900, 2000);
    stage.vm(0, 700, 2000);
    const std::uint32_t leaves = stage.vm(0, 500, 500);
    stage.vm(0, 100, 500);  // not enough
    for (int i = 0; i < 3; ++i) stage.vm(1, 300);
    CHECK(policy.decide(stage.fleet) == std::vector<Move>{{leaves, 1}});
  }
  SUBCASE("wakes a host when there is no room") {
    Stage stage(2);
    stage.vm(0, 900);
    stage.vm(0, 900);
    const std::uint32_t leaves = stage.vm(0, 400);
    CHECK(policy.decide(stage.fleet) == std::vector<Move>{{leaves, 1}});
  }
  SUBCASE("relieves a host whose memory is wanted twice") {
    Stage stage(2);
    const std::uint32_t first = stage.vm(0, 100);
    const std::uint32_t second = stage.vm(0, 100);
    stage.fleet.vms[first].memory_demand = 3000;
    stage.fleet.vms[second].memory_demand = 2000;
    const std::vector<Move> moves = policy.decide(stage.fleet);
    REQUIRE(moves.size() == 1);
    CHECK(moves[0].host == 1);
  }
  SUBCASE("does not send away again what came lately") {
    Stage stage(3);
    for (int i = 0; i < 4; ++i) stage.vm(0, 250);
    const std::uint32_t lonely = stage.vm(1, 200);
    CHECK(policy.decide(stage.fleet) == std::vector<Move>{{lonely, 0}});
    // The VM is on host 0 now, and host 0 is the one with less load.
    Stage after(3);
    after.vm(0, 200);
    for (int i = 0; i < 4; ++i) after.vm(1, 250);
    after.fleet.vms[1].moving = true;  // so that host 1 stays
    for (std::uint64_t step = 1; step < SteadySettings{}.rest_steps; ++step) {
      CAPTURE(step);
      CHECK(policy.decide(after.fleet).empty());
    }
    CHECK(policy.decide(after.fleet) == std::vector<Move>{{0, 1}});
  }
  SUBCASE("does not touch a VM that moves") {
    Stage stage(3);
    for (int i = 0; i < 4; ++i) stage.vm(0, 250);
    const std::uint32_t lonely = stage.vm(1, 200);
    stage.fleet.vms[lonely].moving = true;
    for (const Move& move : policy.decide(stage.fleet)) CHECK(move.vm != lonely);
  }
}
