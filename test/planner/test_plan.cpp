// plan(): gates, the order of the levers, and a verdict for every node that is left alone.
#include <doctest/doctest.h>

#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::Plan;
using planner::PowerOff;
using planner::PowerOn;
using planner::Reason;
using planner::SetFrequency;
using Names = std::vector<std::string>;

// n1 carries the load; n2 … are idle for long.
void idle_cluster(World& w, int nodes) {
  w.node("n1");
  w.pod("default/web-1").on("n1").cpu_milli(500);
  for (int i = 2; i <= nodes; ++i) w.node("n" + std::to_string(i)).idle_for(hours{1});
}

TEST_CASE("plan: idle nodes are switched off, the rest says why not") {
  World w;
  idle_cluster(w, 3);
  const Plan plan = plan_of(w, enforcing());
  CHECK(nodes_of<PowerOff>(plan.actions) == Names{"n2", "n3"});
  CHECK(reason_of(plan.verdicts, "n1") == "InUse");
  CHECK(plan.verdicts.size() == 1);
  CHECK_FALSE(plan.halted.has_value());
  CHECK(plan.actions[0].pre.node_uid == "uid-n2");
  CHECK(plan.actions[0].pre.snapshot_seq == 1);
}

TEST_CASE("plan: a cache that is not synced triggers nothing") {
  World w;
  idle_cluster(w, 3);
  w.node("off").off();
  w.pod("default/big-1").cpu_milli(3900);
  planner::Snapshot snapshot = w.snapshot();
  snapshot.sync.synced = false;
  planner::Reserved reserved;
  const Plan plan =
      planner::plan(snapshot, "default", enforcing(), {}, all_nodes(snapshot), reserved);
  CHECK(plan.actions.empty());
  CHECK(plan.memory.empty());
  for (const char* node : {"n1", "n2", "n3", "off"}) {
    CHECK(reason_of(plan.verdicts, node) == "NotSynced");
  }
}

TEST_CASE("plan: with no node Ready nothing is done, and timers are forgotten") {
  World w;
  w.node("n1").not_ready().idle_for(hours{1});
  w.node("n2").not_ready().idle_for(hours{1});
  w.node("off").off();
  w.pod("default/web-1").cpu_milli(500);
  api::PolicyMemory memory;
  memory.high_since = kNoon - hours{1};
  const Plan plan = plan_of(w, enforcing(), memory);
  CHECK(plan.actions.empty());
  CHECK(plan.halted == Reason::TooManyUnready);
  CHECK(reason_of(plan.verdicts, "n1") == "NodeNotReady");
  CHECK_FALSE(plan.policy_memory.high_since.has_value());
  REQUIRE(plan.memory.count("n1") == 1);
  CHECK_FALSE(plan.memory.at("n1").idle_since.has_value());
}

TEST_CASE("plan: the breaker stops what takes capacity away, and only that") {
  struct Case {
    const char* name;
    int ready, unready, off_by_us;
    bool halted;
  };
  const std::vector<Case> cases = {
      {"four of eight are unready", 4, 4, 0, true},
      {"three are never too many", 3, 3, 0, false},
      {"four of nine are 44 %", 5, 4, 0, false},
      {"those that we switched off do not count", 5, 1, 20, false},
      {"nor do they hide the others", 4, 4, 20, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    for (int i = 0; i < c.ready; ++i) {
      with_agent(w.node("r" + std::to_string(i))).idle_for(hours{1}).utilization(5, 60);
    }
    for (int i = 0; i < c.unready; ++i) w.node("u" + std::to_string(i)).not_ready();
    for (int i = 0; i < c.off_by_us; ++i) w.node("x" + std::to_string(i)).off();
    w.node("spare").off().cpu(64);
    w.pod("default/big-1").cpu_milli(32000);
    api::EnergyPolicySpec spec = enforcing();
    spec.dvfs.enabled = true;
    const Plan plan = plan_of(w, spec);
    CHECK(plan.halted.has_value() == c.halted);
    CHECK(nodes_of<PowerOn>(plan.actions) == Names{"spare"});
    if (!c.halted) continue;
    CHECK(nodes_of<PowerOff>(plan.actions).empty());
    CHECK(nodes_of<SetFrequency>(plan.actions).empty());
    CHECK(reason_of(plan.verdicts, "r0") == "TooManyUnready");
    REQUIRE(plan.memory.count("r0") == 1);
    CHECK_FALSE(plan.memory.at("r0").idle_since.has_value());
  }
}

TEST_CASE("plan: suspended, it changes nothing and names the nodes that pods wait for") {
  World w;
  idle_cluster(w, 2);
  w.node("off").off().cpu(32);
  w.node("off2").off();
  w.pod("default/big-1").cpu_milli(20000);
  api::EnergyPolicySpec spec = enforcing();
  spec.suspend = true;
  const Plan plan = plan_of(w, spec);
  CHECK(plan.actions.empty());
  CHECK(plan.memory.empty());
  for (const char* node : {"n1", "n2", "off", "off2"}) {
    CHECK(reason_of(plan.verdicts, node) == "Suspended");
  }
  CHECK(plan.pending == Names{"default/big-1"});
  CHECK(plan.verdicts.at("off").message.find("default/big-1") != std::string::npos);
  CHECK(plan.verdicts.at("off2").message.find("default/big-1") == std::string::npos);
}

TEST_CASE("plan: Recommend decides the same; not to act is the executor's business") {
  World w;
  idle_cluster(w, 3);
  api::EnergyPolicySpec spec = enforcing();
  const Plan enforced = plan_of(w, spec);
  spec.mode = api::Mode::Recommend;
  CHECK(nodes_of<PowerOff>(plan_of(w, spec).actions) == nodes_of<PowerOff>(enforced.actions));
}

TEST_CASE("plan: no node is switched off while one is woken for pods") {
  World w;
  w.node("n1").cpu(2).idle_for(hours{1});
  w.node("n2").cpu(2);
  w.pod("default/web-1").on("n2").cpu_milli(1500);
  w.node("off").off().cpu(16);
  w.pod("default/big-1").cpu_milli(8000);
  const Plan plan = plan_of(w, enforcing());
  CHECK(nodes_of<PowerOn>(plan.actions) == Names{"off"});
  CHECK(nodes_of<PowerOff>(plan.actions).empty());
  CHECK(reason_of(plan.verdicts, "n1") == "PendingPods");
}

TEST_CASE("plan: an operation in flight is left alone and says so") {
  using Kind = api::OperationKind;
  for (const Kind kind :
       {Kind::PowerOff, Kind::PowerOn, Kind::Migrate, Kind::SetFrequency, Kind::SetCap}) {
    World w;
    idle_cluster(w, 3);
    w.node("n2").operation(kind, "SoftOff");
    const Plan plan = plan_of(w, enforcing());
    CHECK(reason_of(plan.verdicts, "n2") == "InProgress");
    CHECK(plan.verdicts.at("n2").message.find("SoftOff") != std::string::npos);
  }
}

TEST_CASE("plan: an excluded node is never touched, whatever the lever") {
  World w;
  w.node("n0");
  w.pod("default/web-1").on("n0");
  with_agent(w.node("n1")).idle_for(hours{1}).utilization(5, 149);
  w.node("n1").annotation("kwatt.dev/exclude", "true");
  w.node("off").off().annotation("kwatt.dev/exclude", "true");
  w.pod("default/big-1").cpu_milli(3950);
  api::EnergyPolicySpec spec = enforcing();
  spec.dvfs.enabled = spec.capping.enabled = spec.migration.enabled = true;
  const Plan plan = plan_of(w, spec);
  CHECK(plan.actions.empty());
  CHECK(reason_of(plan.verdicts, "n1") == "Excluded");
  CHECK(reason_of(plan.verdicts, "off") == "Excluded");
}

TEST_CASE("plan: with all levers off every node says LeverDisabled") {
  World w;
  idle_cluster(w, 2);
  w.node("off").off();
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.enabled = spec.power_off.enabled = false;
  const Plan plan = plan_of(w, spec);
  CHECK(plan.actions.empty());
  for (const char* node : {"n1", "n2", "off"}) {
    CHECK(reason_of(plan.verdicts, node) == "LeverDisabled");
  }
}

TEST_CASE("plan: one action per node, the first lever wins") {
  World w;
  idle_cluster(w, 1);
  with_agent(w.node("n2")).idle_for(hours{1}).utilization(5, 60);
  with_agent(w.node("n3")).utilization(5, 60);
  w.pod("default/web-2").on("n3");
  api::EnergyPolicySpec spec = enforcing();
  spec.dvfs.enabled = true;
  const Plan plan = plan_of(w, spec);
  CHECK(nodes_of<PowerOff>(plan.actions) == Names{"n2"});
  CHECK(nodes_of<SetFrequency>(plan.actions) == Names{"n3"});
}

TEST_CASE("plan: disruption budgets count what is in flight") {
  struct Case {
    const char* nodes;
    int in_flight;
    std::size_t off;
  };
  for (const Case& c : std::vector<Case>{{"3", 0, 3},
                                         {"3", 2, 1},
                                         {"3", 3, 0},
                                         {"3", 4, 0},
                                         {"20%", 0, 2},
                                         {"15%", 0, 2},
                                         {"0", 0, 0}}) {
    CAPTURE(c.nodes);
    CAPTURE(c.in_flight);
    World w;
    idle_cluster(w, 10);
    for (int i = 0; i < c.in_flight; ++i) {
      w.node("n" + std::to_string(10 - i))
          .operation(api::OperationKind::PowerOff, "Evict", hours{1});
    }
    api::EnergyPolicySpec spec = enforcing();
    spec.disruption.budgets = {api::Budget{}};
    spec.disruption.budgets[0].nodes = c.nodes;
    const Plan plan = plan_of(w, spec);
    CHECK(nodes_of<PowerOff>(plan.actions).size() == c.off);
    REQUIRE(plan.budgets.size() == 1);
    CHECK(plan.budgets[0].used == c.in_flight + static_cast<std::int64_t>(c.off));
    if (c.off == 0) CHECK(reason_of(plan.verdicts, "n2") == "BudgetExhausted");
  }
}

TEST_CASE("plan: a machine that runs although we switched it off comes back into service") {
  World w;
  idle_cluster(w, 1);
  NodeBuilder& node = w.node("n2").off();
  node.state(api::PowerState::On);
  node.machine().status.memory.powered_off_by_us = false;
  planner::Snapshot snapshot = w.snapshot();
  snapshot.nodes.at("n2").ready = true;
  planner::Reserved reserved;
  const Plan plan =
      planner::plan(snapshot, "default", enforcing(), {}, all_nodes(snapshot), reserved);
  CHECK(nodes_of<PowerOn>(plan.actions) == Names{"n2"});
  CHECK(plan.actions[0].reason == Reason::Manual);
}

TEST_CASE("plan: a drain is called off when pods wait for its room") {
  struct Case {
    const char* step;
    std::int64_t pod_milli;
    bool recalled;
  };
  for (const Case& c : std::vector<Case>{{"Evict", 3000, true},
                                         {"WaitEmpty", 3000, true},
                                         {"Evacuate", 3000, true},
                                         {"SoftOff", 3000, false},
                                         {"Evict", 5000, false},
                                         {"Evict", 300, false}}) {
    CAPTURE(c.step);
    CAPTURE(c.pod_milli);
    World w;
    w.node("n1");
    w.pod("default/web-1").on("n1").cpu_milli(3000);
    w.node("n2").operation(api::OperationKind::PowerOff, c.step).cordoned(true);
    w.node("n2").taint("kwatt.dev/candidate", "", "PreferNoSchedule");
    w.pod("default/new-1").cpu_milli(c.pod_milli);
    const Plan plan = plan_of(w, enforcing());
    CHECK(nodes_of<PowerOn>(plan.actions) == (c.recalled ? Names{"n2"} : Names{}));
  }
}

TEST_CASE("plan: reservations of this plan are handed on to the next policy") {
  World w;
  w.node("n1");
  w.node("n2");
  w.pod("default/a-1").on("n1").cpu_milli(300);
  w.pod("default/b-1").on("n2").cpu_milli(900);
  api::EnergyPolicySpec spec = enforcing();
  spec.migration.enabled = true;
  spec.migration.strategy = api::MigrationStrategy::FewestPods;
  const planner::Snapshot snapshot = w.snapshot();
  planner::Reserved reserved;
  const Plan plan = planner::plan(snapshot, "default", spec, {}, all_nodes(snapshot), reserved);
  REQUIRE(nodes_of<PowerOff>(plan.actions).size() == 1);
  const PowerOff* off = find_action<PowerOff>(plan.actions, plan.actions[0].node);
  REQUIRE(off->moves.size() == 1);
  REQUIRE(reserved.count(off->moves[0].node_name) == 1);
  CHECK(reserved.at(off->moves[0].node_name)[0]->uid == off->moves[0].uid);
}

TEST_CASE("plan: it comes back when a wait is over or a window closes") {
  World w;
  idle_cluster(w, 1);
  w.node("n2").idle_for(minutes{7});
  api::EnergyPolicySpec spec = enforcing();
  CHECK(plan_of(w, spec).next_wake == minutes{3});
  spec.disruption.budgets[0].schedule = "0 11 * * *";
  spec.disruption.budgets[0].duration = minutes{61};
  CHECK(plan_of(w, spec).next_wake == minutes{1});
}

TEST_CASE("plan: the same input gives the same plan") {
  World w;
  idle_cluster(w, 8);
  w.node("off").off();
  w.pod("default/big-1").cpu_milli(3900);
  const Plan a = plan_of(w, enforcing()), b = plan_of(w, enforcing());
  REQUIRE(a.actions.size() == b.actions.size());
  for (std::size_t i = 0; i < a.actions.size(); ++i) {
    CHECK(a.actions[i].node == b.actions[i].node);
    CHECK(a.actions[i].what == b.actions[i].what);
    CHECK(a.actions[i].message == b.actions[i].message);
  }
}

}  // namespace
}  // namespace kwatt::test
