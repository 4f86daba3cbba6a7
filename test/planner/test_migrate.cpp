#include <functional>

#include <doctest/doctest.h>

#include "planner/levers.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::enforcing;
using test::NodeBuilder;
using test::OnePass;
using test::World;
using namespace std::chrono_literals;

using Names = std::vector<std::string>;

api::EnergyPolicySpec policy(api::MigrationStrategy strategy, std::int64_t max_nodes = 1) {
  api::EnergyPolicySpec spec = enforcing();
  spec.migration.enabled = true;
  spec.migration.strategy = strategy;
  spec.migration.max_nodes = max_nodes;
  return spec;
}
api::EnergyPolicySpec fewest(std::int64_t max_nodes = 1) {
  return policy(api::MigrationStrategy::FewestPods, max_nodes);
}
api::EnergyPolicySpec best(std::int64_t max_nodes = 1) {
  return policy(api::MigrationStrategy::BestSaving, max_nodes);
}

struct Outcome {
  Proposal proposal;
  Names emptied() const {
    Names names;
    for (const Action& action : proposal.actions) names.push_back(action.node);
    return names;
  }
  std::optional<Reason> refusal(const std::string& node) const {
    const auto at = proposal.refusals.find(node);
    return at == proposal.refusals.end() ? std::nullopt : std::optional{at->second.reason};
  }
  std::string message(const std::string& node) const { return proposal.refusals.at(node).message; }
  const std::vector<api::PodMove>& moves(std::size_t action) const {
    return std::get<PowerOff>(proposal.actions.at(action).what).moves;
  }
};

Outcome run(const World& w, const api::EnergyPolicySpec& spec) {
  OnePass p{w.snapshot(), spec};
  return {migrate(p.pass)};
}

// `count` pods named after their deployment on the node.
void pods(World& w, const std::string& node, const std::string& name, int count,
          std::int64_t cpu_milli = 100) {
  for (int i = 0; i < count; ++i) {
    w.pod("default/" + name + "-" + std::to_string(i)).on(node).cpu_milli(cpu_milli);
  }
}

TEST_CASE("FewestPods empties the maxNodes nodes with the fewest workload pods") {
  World w;
  for (const char* n : {"n1", "n2", "n3", "n4"}) w.node(n);
  pods(w, "n1", "a", 4);
  pods(w, "n2", "b", 1);
  pods(w, "n3", "c", 2);
  pods(w, "n4", "d", 4);
  w.pod("kube-system/ds-1").on("n2").daemon();  // does not count
  Outcome o = run(w, fewest(1));
  CHECK(o.emptied() == Names{"n2"});
  CHECK(o.proposal.actions[0].reason == Reason::LowUtilization);
  REQUIRE(o.moves(0).size() == 1);
  CHECK(o.moves(0)[0].namespace_name == "default");
  CHECK(o.moves(0)[0].pod_name == "b-0");
  CHECK(o.moves(0)[0].uid == "uid-default/b-0");
  CHECK(o.moves(0)[0].node_name == "n1");  // most allocated, first by name
  CHECK(o.refusal("n3") == Reason::RateLimited);
  CHECK(o.proposal.actions[0].expected_saving > Milliwatts{0});

  o = run(w, fewest(2));
  CHECK(o.emptied() == Names{"n2", "n3"});
  for (const api::PodMove& move : o.moves(0)) CHECK(move.node_name != "n3");
}

TEST_CASE("nodes that are being emptied already count against maxNodes") {
  World w;
  for (const char* n : {"n1", "n2", "n3"}) w.node(n);
  pods(w, "n1", "a", 1);
  pods(w, "n2", "b", 2);
  pods(w, "n3", "c", 2);
  w.node("n3").operation(api::OperationKind::PowerOff).machine().status.operation.moves.resize(1);
  const Outcome o = run(w, fewest(1));
  CHECK(o.emptied().empty());
  CHECK(o.refusal("n1") == Reason::RateLimited);
  CHECK(o.refusal("n3") == Reason::InProgress);
  CHECK(run(w, fewest(2)).emptied() == Names{"n1"});
}

TEST_CASE("every pod has a reserved destination, or the node is left alone") {
  World w;
  w.node("n1");
  w.node("n2").cpu(2);
  w.node("n3").taint("dedicated", "", "NoSchedule");
  pods(w, "n1", "a", 2, 900);
  pods(w, "n2", "b", 3, 100);
  // n1 holds 2 × 900m; n2 has 1700m left: one of the two has no place.
  Outcome o = run(w, fewest());
  CHECK(o.emptied() == Names{"n2"});  // n1 was looked at first and could not be emptied
  CHECK(o.refusal("n1") == Reason::NoDestination);
  CHECK(o.message("n1").find("pod default/a-1 fits nowhere else: 0 of 2 awake nodes fit (1 "
                             "NodeResourcesFit, 1 TaintToleration)") == 0);
}

TEST_CASE("two nodes never count on the same room") {
  World w;
  for (const char* n : {"n1", "n2"}) {
    w.node(n);
    pods(w, n, std::string("p") + n, 1, 1000);
  }
  w.node("n3").cpu_milli(3000);
  pods(w, "n3", "q", 3, 500);
  api::EnergyPolicySpec spec = fewest(2);
  spec.placement.strategy = api::PlacementStrategy::Default;  // the fullest
  const Outcome o = run(w, spec);
  REQUIRE(o.emptied() == Names{"n1"});
  CHECK(o.moves(0)[0].node_name == "n3");  // 500m are left there
  CHECK(o.refusal("n2") == Reason::NoDestination);
}

TEST_CASE("a node that others are emptied onto is not emptied itself") {
  World w;
  w.node("n1");
  w.node("n2");
  w.node("n3").taint("dedicated", "", "NoSchedule");
  pods(w, "n1", "a", 1);
  pods(w, "n2", "b", 2);
  pods(w, "n3", "c", 3);
  w.pod("default/b-0").tolerate("dedicated", "Exists", "", "");
  w.pod("default/b-1").tolerate("dedicated", "Exists", "", "");
  w.pod("default/c-0").cpu_milli(2500);  // n3 is used too much
  // n1 goes to n2; n2's own pods could go on to n3, but not those that just came.
  const Outcome o = run(w, fewest(3));
  CHECK(o.emptied() == Names{"n1"});
  CHECK(o.refusal("n2") == Reason::InUse);
  CHECK(o.message("n2") == "1 more pod is expected here");
}

TEST_CASE("why a node is not emptied") {
  struct Case {
    std::string name;
    std::function<void(World&)> given;
    std::optional<Reason> want;  // of n1; nullopt: it is emptied
  };
  const Case cases[] = {
      {"nothing speaks against it", [](World&) {}, std::nullopt},
      {"control plane", [](World& w) { w.node("n1").control_plane(); }, Reason::ControlPlane},
      {"excluded", [](World& w) { w.node("n1").annotation("kwatt.dev/exclude", "true"); },
       Reason::Excluded},
      {"no driver", [](World& w) { w.node("n1").no_driver(); }, Reason::NoDriver},
      {"on for too short", [](World& w) { w.node("n1").on_for(1min); }, Reason::MinOnTime},
      {"requests above the limit", [](World& w) { pods(w, "n1", "big", 1, 2000); }, Reason::InUse},
      {"memory above the limit",
       [](World& w) { w.pod("default/big-0").on("n1").memory_mib(9 * 1024); }, Reason::InUse},
      {"measured load above the limit", [](World& w) { w.node("n1").utilization(50); },
       Reason::InUse},
      {"measured load below it", [](World& w) { w.node("n1").utilization(49); }, std::nullopt},
      {"a bare pod", [](World& w) { w.pod("default/a-0").bare(); }, Reason::PodNotMovable},
      {"local storage", [](World& w) { w.pod("default/a-0").local_storage(); },
       Reason::LocalStorage},
      {"a veto",
       [](World& w) { w.pod("default/a-0").annotation("kwatt.dev/do-not-disrupt", "true"); },
       Reason::DoNotDisrupt},
      {"a budget without room",
       [](World& w) {
         w.pod("default/a-0").label("app", "a");
         w.budget("default/b", "app", "a", 0);
       },
       Reason::PDBBlocked},
      {"a budget that allows one of its two pods at a time",
       [](World& w) {
         w.pod("default/a-0").label("app", "a");
         w.pod("default/a-1").on("n1").label("app", "a");
         w.budget("default/b", "app", "a", 1);
       },
       std::nullopt},
      {"a volume that ties a pod to the node",
       [](World& w) {
         w.volume("pv", "kubernetes.io/hostname", "n1");
         w.claim("default/data", "pv");
         w.pod("default/a-0").claim("data");
       },
       Reason::NoDestination},
      {"anti-affinity against the only other node",
       [](World& w) {
         w.pod("default/a-0").label("app", "a").anti_affinity("app", "a");
         w.pod("default/b-0").label("app", "a");
       },
       Reason::NoDestination},
      {"pods wait for resources",
       [](World& w) {
         w.node("n9").cpu(16).off();
         w.pod("default/p-1").cpu_milli(9000);
       },
       Reason::PendingPods},
      {"never woken, and only tested by hand", [](World& w) { w.node("n1").wake_not_verified(); },
       Reason::WakeNotVerified},
      {"minAwake", [](World& w) { w.node("n2").not_ready(); }, Reason::MinAwake},
      {"boot takes more energy than being off saves",
       [](World& w) { w.node("n1").watts(10, 50).boot(600s, 0); }, Reason::NotWorthIt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n1");
    w.node("n2");
    pods(w, "n1", "a", 1);
    pods(w, "n2", "b", 6, 350);  // 52 %: stays
    c.given(w);
    api::EnergyPolicySpec spec = fewest();
    spec.power_off.wake_test = api::WakeTest::Manual;
    const Outcome o = run(w, spec);
    CHECK(o.emptied().size() == (c.want ? 0u : 1u));
    if (!c.want) CHECK(o.emptied() == Names{"n1"});
    CHECK(o.refusal("n1") == c.want);
  }
}

TEST_CASE("pods that are terminating already need no destination") {
  World w;
  w.node("n1");
  w.node("n2");
  pods(w, "n1", "a", 2);
  pods(w, "n2", "b", 6);
  w.pod("default/a-1").bare().terminating();
  const Outcome o = run(w, fewest());
  REQUIRE(o.emptied() == Names{"n1"});
  CHECK(o.moves(0).size() == 1);
}

TEST_CASE("headroom is kept by what remains") {
  World w;
  w.node("n1");
  w.node("n2");
  pods(w, "n1", "a", 2, 250);
  pods(w, "n2", "b", 6, 500);
  api::EnergyPolicySpec spec = fewest();
  spec.migration.utilization_below_percent = 50;
  spec.power_on.headroom = {12, 0};
  CHECK(run(w, spec).emptied() == Names{"n1"});
  spec.power_on.headroom = {13, 0};
  CHECK(run(w, spec).refusal("n1") == Reason::Headroom);
}

TEST_CASE("what moves to nodes of no policy takes nothing of the policy's headroom") {
  World w;
  w.node("n1");
  w.node("others").cpu(32);
  pods(w, "n1", "a", 2, 250);
  pods(w, "others", "b", 9, 100);
  api::EnergyPolicySpec spec = fewest();
  spec.power_on.headroom = {0, 0};
  spec.power_off.min_awake = 0;
  OnePass p{w.snapshot(), spec};
  p.selected = {"n1"};
  CHECK(Outcome{migrate(p.pass)}.emptied() == Names{"n1"});
}

TEST_CASE("the load that moves must not drive the others above highUtilizationPercent") {
  World w;
  w.node("n1").utilization(40);
  w.node("n2").utilization(43);
  pods(w, "n1", "a", 1);
  pods(w, "n2", "b", 6, 350);
  CHECK(run(w, fewest()).refusal("n1") == Reason::HighLoad);  // 83 %
  w.node("n2").utilization(41);
  CHECK(run(w, fewest()).emptied() == Names{"n1"});
}

TEST_CASE("BestSaving prefers the most energy for the least disruption") {
  struct Case {
    std::string name;
    std::function<void(World&)> given;
    Names want;
  };
  const Case cases[] = {
      {"the hungrier of two with as many pods",
       [](World& w) {
         w.node("n1").watts(50, 100);
         w.node("n2").watts(150, 250);
         pods(w, "n1", "a", 2);
         pods(w, "n2", "b", 2);
       },
       {"n2"}},
      {"the emptier of two alike",
       [](World& w) {
         w.node("n1").watts(100, 200);
         w.node("n2").watts(100, 200);
         pods(w, "n1", "a", 8);
         pods(w, "n2", "b", 2);
       },
       {"n2"}},
      {"four times the pods for five times the saving",
       [](World& w) {
         w.node("n1").watts(40, 60);
         w.node("n2").watts(400, 600);
         pods(w, "n1", "a", 1);
         pods(w, "n2", "b", 4);
       },
       {"n2"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n9").cpu(16).watts(80, 160);
    pods(w, "n9", "busy", 20, 500);
    c.given(w);
    const Outcome o = run(w, best());
    CHECK(o.emptied() == c.want);
    CHECK(o.proposal.actions[0].message.find("score ") != std::string::npos);
  }
}

TEST_CASE("a score below minSavingScore is not worth it, with the numbers said") {
  // Two alike: 110 W each (1500m of 4000m on a 50..210 W line, and 10 W of load move along);
  // emptying n1 saves 50 of 220 W (22 %) and disrupts 16 of 17 (94 %).
  World w;
  w.node("n1").watts(50, 210).boot(0s, 0).shutdown(0s);
  w.node("n2").watts(50, 210).boot(0s, 0).shutdown(0s);
  pods(w, "n1", "a", 15);
  pods(w, "n2", "b", 1, 1500);
  api::EnergyPolicySpec spec = best();
  spec.migration.utilization_below_percent = 38;
  w.node("n2").annotation("kwatt.dev/exclude", "true");
  Outcome o = run(w, spec);
  CHECK(o.refusal("n1") == Reason::NotWorthIt);
  CHECK(o.message("n1").find("below migration.minSavingScore 50") != std::string::npos);
  // saved 50 W of 220 W, disrupted 16 of 18: 0.2273 / 0.8889 = 25 %.
  spec.migration.min_saving_score = 25;
  o = run(w, spec);
  REQUIRE(o.emptied() == Names{"n1"});
  CHECK(o.proposal.actions[0].expected_saving == watts(50));
  CHECK(o.proposal.actions[0].message ==
        "15 pods move to 1 nodes; saves 50.0 W of 220.0 W, score 25 %");
  spec.migration.min_saving_score = 26;
  CHECK(run(w, spec).refusal("n1") == Reason::NotWorthIt);
  // The boot energy, over the 30 minutes it stays off at least, lowers the score.
  spec.migration.min_saving_score = 25;
  w.node("n1").boot(60s, 18'000);
  CHECK(run(w, spec).refusal("n1") == Reason::NotWorthIt);
}

TEST_CASE("BestSaving with maxNodes takes them one after the other") {
  World w;
  w.node("n9").cpu(16);
  pods(w, "n9", "busy", 20, 500);
  for (const char* n : {"n1", "n2", "n3"}) {
    w.node(n);
    pods(w, n, std::string("p") + n, 2);
  }
  w.node("n2").watts(90, 150);
  const Outcome o = run(w, best(2));
  CHECK(o.emptied() == Names{"n2", "n1"});
  CHECK(o.refusal("n3") == Reason::RateLimited);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const api::PodMove& move : o.moves(i)) CHECK(move.node_name == "n9");
  }
}

TEST_CASE("an unproven machine is emptied as a wake test, one at a time") {
  World w;
  for (const char* n : {"n1", "n2"}) {
    w.node(n).wake_not_verified();
    pods(w, n, std::string("p") + n, 1);
  }
  w.node("n3");
  pods(w, "n3", "q", 5, 420);  // 52 %: stays
  Outcome o = run(w, fewest(2));
  REQUIRE(o.emptied() == Names{"n1"});
  CHECK(std::get<PowerOff>(o.proposal.actions[0].what).wake_test);
  CHECK(o.refusal("n2") == Reason::WakeNotVerified);
  // An empty node that could be tested goes first.
  w.node("n4").wake_not_verified();
  CHECK(run(w, fewest(2)).refusal("n1") == Reason::WakeNotVerified);
}

TEST_CASE("the same world gives the same proposal, whatever order it was written in") {
  const auto build = [](bool reverse) {
    World w;
    std::vector<int> order;
    for (int i = 0; i < 12; ++i) order.push_back(reverse ? 11 - i : i);
    for (const int i : order) {
      const std::string n = "n" + std::to_string(100 + i);
      w.node(n).watts(50 + i % 3, 150).zone(i % 2 == 0 ? "a" : "b");
      pods(w, n, "p" + std::to_string(i), 1 + i % 4, 100 + 50 * (i % 3));
    }
    return w;
  };
  for (const api::EnergyPolicySpec& spec : {best(3), fewest(3)}) {
    const Outcome a = run(build(false), spec), b = run(build(true), spec);
    REQUIRE(a.emptied() == b.emptied());
    CHECK_FALSE(a.emptied().empty());
    for (std::size_t i = 0; i < a.proposal.actions.size(); ++i) {
      CHECK(a.moves(i) == b.moves(i));
      CHECK(a.proposal.actions[i].message == b.proposal.actions[i].message);
    }
  }
}

}  // namespace
}  // namespace kwatt::planner
