#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/destination_choice.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::enforcing;
using test::OnePass;
using test::World;

struct Case {
  const char* what;
  api::PlacementStrategy strategy;
  std::vector<api::PluginWeight> plugins;
  const char* chosen;
};

TEST_CASE("a pod that leaves goes where the policy's strategy and plugins send it") {
  using Strategy = api::PlacementStrategy;
  const Case cases[] = {
      {"by energy: the flat machine, though the steep one is fuller",
       Strategy::EnergyAware,
       {},
       "flat"},
      {"the strategies that know no energy take the fullest", Strategy::Default, {}, "steep"},
      {"without what speaks of energy, the fullest of equals",
       Strategy::EnergyAware,
       {{"EnergyIncrease", 0}, {"Efficiency", 0}},
       "steep"},
      {"by what a machine does for its energy alone",
       Strategy::EnergyAware,
       {{"EnergyIncrease", 0}},
       "flat"},
      {"a plugin that does not exist is told of elsewhere; the fullest",
       Strategy::EnergyAware,
       {{"Magic", 3}},
       "steep"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    World w;
    w.node("from");
    w.node("flat").watts(100, 120);
    w.node("steep").watts(100, 300);
    w.pod("default/stays-0").on("steep").cpu_milli(1000);
    w.pod("default/web-0").on("from").cpu_milli(1000);
    api::EnergyPolicySpec spec = enforcing();
    spec.placement.strategy = c.strategy;
    spec.placement.plugins = c.plugins;
    OnePass p{w.snapshot(), spec};
    p.pass.what_if.exclude("from");
    DestinationChoice choice{p.pass};
    const auto pod = p.pass.snapshot.nodes.at("from").pods.front();
    CHECK(choice.place(p.pass.what_if, pod) == NodeName{c.chosen});
  }
}

TEST_CASE("what was placed before counts: the flat machine is taken until it is not cheaper") {
  World w;
  w.node("from").cpu(8);
  // Up to half load it adds 10 W a core, beyond it 90 W; the other one 50 W all the way.
  w.node("bent").cpu(4).curve({100, 104, 108, 112, 116, 120, 156, 192, 228, 264, 300});
  w.node("line").cpu(4).watts(100, 300);
  for (int i = 0; i < 4; ++i) w.pod(fmt::format("default/web-{}", i)).on("from").cpu_milli(1000);
  OnePass p{w.snapshot(), enforcing()};
  p.pass.what_if.exclude("from");
  DestinationChoice choice{p.pass};
  std::string where;
  for (const auto& pod : p.pass.snapshot.nodes.at("from").pods) {
    where += choice.place(p.pass.what_if, pod).value_or("nowhere") + " ";
  }
  CHECK(where == "bent bent line line ");
}

TEST_CASE("a slow machine is taken only if nothing else fits, whatever it costs") {
  World w;
  w.node("from");
  w.node("slow").watts(10, 20).label("kwatt.dev/frequency", "low");
  w.node("steep").watts(100, 300).cpu(1);
  for (int i = 0; i < 2; ++i) w.pod(fmt::format("default/web-{}", i)).on("from").cpu_milli(900);
  OnePass p{w.snapshot(), enforcing()};
  p.pass.what_if.exclude("from");
  DestinationChoice choice{p.pass};
  const auto& pods = p.pass.snapshot.nodes.at("from").pods;
  CHECK(choice.place(p.pass.what_if, pods[0]) == "steep");
  CHECK(choice.place(p.pass.what_if, pods[1]) == "slow");
}

TEST_CASE("only the fullest few that fit are compared") {
  World w;
  w.node("from");
  for (std::size_t i = 0; i < kDestinationsCompared; ++i) {
    const std::string name = fmt::format("steep-{}", i);
    w.node(name).watts(100, 300);
    w.pod("default/stays-" + std::to_string(i)).on(name).cpu_milli(500);
  }
  w.node("flat-and-empty").watts(100, 101);
  w.pod("default/web-0").on("from").cpu_milli(500);
  OnePass p{w.snapshot(), enforcing()};
  p.pass.what_if.exclude("from");
  DestinationChoice choice{p.pass};
  CHECK(choice.place(p.pass.what_if, p.pass.snapshot.nodes.at("from").pods.front()) == "steep-0");
}

TEST_CASE("a plugin that does not exist is named with its path and what there is") {
  api::PlacementSpec spec;
  CHECK_FALSE(placement_problem(spec).has_value());
  spec.plugins = {{"Carbon", 3}, {"Magic", 1}};
  const auto problem = placement_problem(spec);
  REQUIRE(problem.has_value());
  CHECK(problem->starts_with(
      "spec.placement.plugins[1].name: \"Magic\" is no plugin; there are Leaving, "));
}

}  // namespace
}  // namespace kwatt::planner
