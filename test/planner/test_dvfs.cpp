// The DVFS lever: dead-band, what the hardware offers, whose setting it is, spreading, idle nodes.
#include <functional>

#include <doctest/doctest.h>

#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::Migrate;
using planner::SetFrequency;
using Names = std::vector<std::string>;

api::EnergyPolicySpec slowing() {
  api::EnergyPolicySpec spec = enforcing();
  spec.dvfs.enabled = true;
  return spec;
}

TEST_CASE("dvfs: low and high by the window mean, with a dead-band in between") {
  struct Case {
    std::int64_t percent;
    std::string governor, reason;  // governor "": no action, the verdict's reason
  };
  for (const Case& c : std::vector<Case>{{0, "powersave", "LowUtilization"},
                                         {29, "powersave", "LowUtilization"},
                                         {30, "", "InUse"},
                                         {45, "", "InUse"},
                                         {60, "", "InUse"},
                                         {61, "performance", "HighLoad"},
                                         {100, "performance", "HighLoad"}}) {
    CAPTURE(c.percent);
    World w;
    with_agent(w.node("n1")).utilization(c.percent);
    OnePass p{w.snapshot(), slowing()};
    const planner::Proposal proposal = planner::dvfs(p.pass);
    if (c.governor.empty()) {
      CHECK(proposal.actions.empty());
      CHECK(reason_of(proposal.refusals, "n1") == c.reason);
    } else {
      REQUIRE(proposal.actions.size() == 1);
      const auto* set = find_action<SetFrequency>(proposal.actions, "n1");
      CHECK(set->level.governor == c.governor);
      CHECK(set->low == (c.governor == "powersave"));
      CHECK(api::to_string(proposal.actions[0].reason) == c.reason);
    }
  }
}

TEST_CASE("dvfs: frequency-invariant utilization decides, not the plain busy fraction") {
  World w;
  // 80 % busy at a quarter of the frequency is 20 % of what the machine can do.
  with_agent(w.node("n1")).utilization(20, 80, 0, minutes{5});
  OnePass p{w.snapshot(), slowing()};
  REQUIRE(find_action<SetFrequency>(planner::dvfs(p.pass).actions, "n1") != nullptr);
  CHECK(find_action<SetFrequency>(planner::dvfs(p.pass).actions, "n1")->low);
}

TEST_CASE("dvfs: a slow machine that is saturated hides its load, and is sped up") {
  World w;
  slowed(with_agent(w.node("n1"))).utilization(37, 100, 0, minutes{5});
  OnePass p{w.snapshot(), slowing()};
  const planner::Proposal proposal = planner::dvfs(p.pass);
  const auto* set = find_action<SetFrequency>(proposal.actions, "n1");
  REQUIRE(set != nullptr);
  CHECK_FALSE(set->low);
}

TEST_CASE("dvfs: what is not done, and why") {
  struct Case {
    const char* name;
    std::function<void(NodeBuilder&, api::EnergyPolicySpec&)> given;
    std::string reason;
    std::string says;
  };
  const std::vector<Case> cases = {
      {"set already", [](NodeBuilder& n, auto&) { slowed(n); }, "LowUtilization", "already"},
      {"set by hand", [](NodeBuilder& n, auto&) { n.annotation("kwatt.dev/governor", "ondemand"); },
       "Manual", "kwatt.dev/governor"},
      {"another key set by hand",
       [](NodeBuilder& n, auto&) { slowed(n).annotation("kwatt.dev/epp", "power"); }, "Manual",
       "kwatt.dev/epp"},
      {"no agent", [](NodeBuilder& n, auto&) { n.machine().status.report = {}; }, "AgentStale",
       "no agent"},
      {"no samples", [](NodeBuilder& n, auto&) { n.utilization(5, 5, 0, seconds{10}); },
       "StaleTelemetry", "1m"},
      {"old samples", [](NodeBuilder& n, auto&) { n.utilization(5, 5, 0, minutes{5}, minutes{1}); },
       "StaleTelemetry", ""},
      {"a governor the machine does not have",
       [](NodeBuilder&, auto& spec) { spec.dvfs.low.governor = "conservative"; }, "OutOfRange",
       "performance, powersave and schedutil"},
      {"a frequency below the hardware's",
       [](NodeBuilder&, auto& spec) { spec.dvfs.low.max_frequency_mhz = 1100; }, "OutOfRange",
       "1200..3200"},
      {"a frequency above the hardware's",
       [](NodeBuilder&, auto& spec) { spec.dvfs.low.max_frequency_mhz = 3300; }, "OutOfRange",
       "3300"},
      {"a limit that would slow the load",
       [](NodeBuilder& n, auto& spec) {
         n.utilization(45);
         spec.dvfs.low_utilization_percent = 50;
       },
       "NotWorthIt", "1200 MHz would slow the load by 20.0 %"},
      {"a limit that the load would fill",
       [](NodeBuilder& n, auto& spec) {
         n.utilization(35);
         spec.dvfs.low_utilization_percent = 50;
       },
       "NotWorthIt", "sped up again"},
      {"pods are on their way to it", [](NodeBuilder& n, auto&) { n.cpu(2); }, "InUse",
       "on their way"},
      {"control plane", [](NodeBuilder& n, auto&) { n.control_plane(); }, "ControlPlane", ""},
      {"this controller's node", [](NodeBuilder& n, auto&) { n.own_node(); }, "ControlPlane", ""},
      {"excluded", [](NodeBuilder& n, auto&) { n.annotation("kwatt.dev/exclude", "true"); },
       "Excluded", ""},
      {"busy", [](NodeBuilder& n, auto&) { n.operation(api::OperationKind::SetCap); }, "InProgress",
       ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    api::EnergyPolicySpec spec = slowing();
    c.given(with_agent(w.node("n1")).utilization(5), spec);
    OnePass p{w.snapshot(), spec};
    if (std::string(c.says) == "on their way") {
      auto pod = std::make_shared<api::Pod>();
      pod->namespace_name = "default";
      pod->name = pod->uid = "new-1";
      pod->spec = std::make_shared<api::PodTemplate>();
      REQUIRE_FALSE(p.what_if.place_on(pod, "n1").has_value());
    }
    const planner::Proposal proposal = planner::dvfs(p.pass);
    CHECK(proposal.actions.empty());
    CHECK(reason_of(proposal.refusals, "n1") == c.reason);
    CHECK(proposal.refusals.at("n1").message.find(c.says) != std::string::npos);
  }
}

TEST_CASE("dvfs: control-plane nodes only where the policy includes them") {
  World w;
  with_agent(w.node("cp")).control_plane().utilization(5);
  api::EnergyPolicySpec spec = slowing();
  spec.include_control_plane = true;
  OnePass p{w.snapshot(), spec};
  CHECK(nodes_of<SetFrequency>(planner::dvfs(p.pass).actions) == Names{"cp"});
}

TEST_CASE("dvfs: a level that asks for nothing takes back what is ours") {
  World w;
  with_agent(w.node("ours")).utilization(90);
  slowed(w.node("ours"));
  with_agent(w.node("plain")).utilization(90);
  api::EnergyPolicySpec spec = slowing();
  spec.dvfs.high = {"", 0, ""};
  OnePass p{w.snapshot(), spec};
  CHECK(nodes_of<SetFrequency>(planner::dvfs(p.pass).actions) == Names{"ours"});
}

TEST_CASE("dvfs: a changed level is asked for again") {
  World w;
  with_agent(w.node("n1")).utilization(5);
  slowed(w.node("n1"));
  api::EnergyPolicySpec spec = slowing();
  spec.dvfs.low.max_frequency_mhz = 1600;
  OnePass p{w.snapshot(), spec};
  CHECK(nodes_of<SetFrequency>(planner::dvfs(p.pass).actions) == Names{"n1"});
}

// A node of 4 cores at 95 % with pods of 2000, 800, 400, 300 and 100 millicores.
void hot_node(World& w) {
  with_agent(w.node("hot")).utilization(95);
  for (const int milli : {2000, 800, 400, 300, 100}) {
    w.pod("default/p" + std::to_string(milli) + "-1").on("hot").cpu_milli(milli);
  }
}

TEST_CASE("dvfs migration: the smallest pods that suffice go to nodes with little load") {
  struct Case {
    std::int64_t until, max_pods;
    Names pods;
  };
  for (const Case& c : std::vector<Case>{{60, 5, {"p2000-1"}},
                                         {85, 5, {"p400-1"}},
                                         {93, 5, {"p100-1"}},
                                         {80, 5, {"p800-1"}},
                                         {20, 2, {"p2000-1", "p800-1"}}}) {
    CAPTURE(c.until);
    World w;
    hot_node(w);
    with_agent(w.node("idle")).cpu(64).utilization(2);
    with_agent(w.node("mid")).cpu(64).utilization(50);
    api::EnergyPolicySpec spec = slowing();
    spec.dvfs.migration = {true, std::max<std::int64_t>(80, c.until + 1), c.until, c.max_pods};
    OnePass p{w.snapshot(), spec};
    const planner::Proposal proposal = planner::dvfs(p.pass);
    const Migrate* migrate = find_action<Migrate>(proposal.actions, "hot");
    REQUIRE(migrate != nullptr);
    Names pods;
    for (const api::PodMove& move : migrate->moves) {
      pods.push_back(move.pod_name);
      CHECK(move.node_name == "idle");
    }
    CHECK(pods == c.pods);
    // The node itself is not slowed or sped up in the same pass.
    CHECK(find_action<SetFrequency>(proposal.actions, "hot") == nullptr);
  }
}

TEST_CASE("dvfs migration: not from nodes that may not be emptied, not onto loaded ones") {
  struct Case {
    const char* name;
    std::function<void(World&)> given;
  };
  const std::vector<Case> cases = {
      {"excluded", [](World& w) { w.node("hot").annotation("kwatt.dev/exclude", "true"); }},
      {"control plane", [](World& w) { w.node("hot").control_plane(); }},
      {"settling", [](World& w) { w.node("hot").cool_down(seconds{30}); }},
      {"busy", [](World& w) { w.node("hot").operation(api::OperationKind::Migrate); }},
      {"no node with little load", [](World& w) { w.node("idle").utilization(40); }},
      {"the other node is cordoned", [](World& w) { w.node("idle").cordoned(); }},
      {"not above the threshold", [](World& w) { w.node("hot").utilization(80); }},
      {"bare pods",
       [](World& w) {
         for (const char* pod : {"2000", "800", "400", "300", "100"}) {
           w.pod("default/p" + std::string(pod) + "-1").bare();
         }
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    hot_node(w);
    with_agent(w.node("idle")).cpu(64).utilization(2);
    c.given(w);
    api::EnergyPolicySpec spec = slowing();
    spec.dvfs.migration.enabled = true;
    OnePass p{w.snapshot(), spec};
    CHECK(nodes_of<Migrate>(planner::dvfs(p.pass).actions).empty());
  }
}

TEST_CASE("idle pool: idle nodes at low frequency are kept awake, and never emptied") {
  World w;
  w.node("a").idle_for(hours{1});
  slowed(with_agent(w.node("b"))).idle_for(hours{1}).utilization(5);
  w.node("c").idle_for(hours{1}).control_plane();
  w.node("d").idle_for(hours{1});
  w.node("e");
  w.pod("default/web-1").on("e");
  w.node("f").off();
  api::EnergyPolicySpec spec = slowing();
  struct Case {
    std::int64_t wanted;
    std::set<std::string> pool;
  };
  for (const Case& c : std::vector<Case>{
           {0, {}}, {1, {"b"}}, {2, {"a", "b"}}, {3, {"a", "b", "d"}}, {9, {"a", "b", "d"}}}) {
    CAPTURE(c.wanted);
    spec.dvfs.idle_nodes = c.wanted;
    OnePass p{w.snapshot(), spec};
    CHECK(planner::idle_pool(p.pass) == c.pool);
    const planner::Plan plan = plan_of(w, spec);
    for (const std::string& node : c.pool) {
      CHECK(find_action<planner::PowerOff>(plan.actions, node) == nullptr);
    }
  }
  spec.dvfs.idle_nodes = 2;
  CHECK(nodes_of<planner::PowerOff>(plan_of(w, spec).actions) == Names{"d"});
  spec.dvfs.enabled = false;
  CHECK(nodes_of<planner::PowerOff>(plan_of(w, spec).actions) == Names{"a", "b", "d"});
}

TEST_CASE("window: a mean is over the newest window, and only if that is covered") {
  World w;
  NodeBuilder& node = w.node("n1");
  for (int i = 60; i >= 0; --i) {
    const std::int64_t percent_now = i >= 6 ? 90 : 10;  // the last minute is quiet
    node.sample({kNoon - seconds{10 * i}, percent(percent_now), percent(percent_now),
                 watts(100 + i), i % 2 == 0});
  }
  const planner::NodeView view = w.snapshot().nodes.at("n1");
  const auto mean = planner::window_mean(view, seconds{60}, kNoon);
  REQUIRE(mean.has_value());
  CHECK(mean->utilization == percent(10));
  CHECK(mean->has_power);
  CHECK(mean->power == watts(102));  // of the samples with a reading: 100, 102, 104
  CHECK_FALSE(planner::window_mean(view, minutes{20}, kNoon).has_value());
  CHECK_FALSE(planner::window_mean(view, seconds{60}, kNoon + seconds{31}).has_value());
}

}  // namespace
}  // namespace kwatt::test
