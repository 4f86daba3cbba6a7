// Guards that hold across levers: who else owns a node, the breaker over work in flight, how old
// readings may be, which budget binds, and caps that outlive whoever set them.
#include <functional>

#include <doctest/doctest.h>

#include "planner/candidates.hpp"
#include "planner/cap_budget.hpp"
#include "planner/guards.hpp"
#include "planner/recall.hpp"
#include "planner/steps_common.hpp"
#include "test/planner/agent.hpp"
#include "test/planner/stage.hpp"

TEST_SUITE_BEGIN("guards");

namespace kwatt::test {
namespace {

using planner::Plan;
using planner::PowerOff;
using planner::PowerOn;
using planner::Reason;
using planner::SetCap;
using Kind = api::OperationKind;
namespace names = planner::names;

// n0 carries the load; n1 has been idle for long, and goes unless a guard holds it.
Plan with_idle(const std::function<void(NodeBuilder&)>& given,
               const std::function<void(planner::NodeView&)>& seen = {}) {
  World w;
  w.node("n0");
  w.pod("default/busy-1").on("n0");
  given(w.node("n1").idle_for(hours{1}));
  planner::Snapshot snapshot = w.snapshot();
  if (seen) seen(snapshot.nodes.at("n1"));
  planner::Reserved reserved;
  return planner::plan(snapshot, "default", enforcing(), {}, all_nodes(snapshot), reserved);
}

TEST_CASE("a node that another controller owns is left to it, unless it was told not to act") {
  struct Case {
    const char* name;
    std::function<void(NodeBuilder&)> given;
    const char* says;  // nullptr: it goes
  };
  const std::string released{names::kReleasedBy};
  const Case cases[] = {
      {"nobody's", [](NodeBuilder&) {}, nullptr},
      {"Karpenter's", [](NodeBuilder& n) { n.label("karpenter.sh/nodepool", "spot"); },
       "Karpenter's pool spot"},
      {"EKS", [](NodeBuilder& n) { n.label("eks.amazonaws.com/nodegroup", "g"); }, "node group g"},
      {"GKE", [](NodeBuilder& n) { n.label("cloud.google.com/gke-nodepool", "p"); }, "node pool p"},
      {"AKS", [](NodeBuilder& n) { n.label("kubernetes.azure.com/agentpool", "p"); },
       "agent pool p"},
      {"Cluster API's", [](NodeBuilder& n) { n.annotation("cluster.x-k8s.io/machine", "m-1"); },
       "Cluster API's machine m-1"},
      {"OpenShift's", [](NodeBuilder& n) { n.annotation("machine.openshift.io/machine", "a/b"); },
       "Machine API's machine a/b"},
      {"Metal3's maintenance",
       [](NodeBuilder& n) { n.annotation("lifecycle.metal3.io/maintenance", "5m"); },
       "lifecycle.metal3.io/maintenance"},
      {"released by the one that owns it",
       [&](NodeBuilder& n) {
         n.annotation("cluster.x-k8s.io/machine", "m-1").annotation(released, "cluster-api");
       },
       nullptr},
      {"released in a list",
       [&](NodeBuilder& n) {
         n.annotation("cluster.x-k8s.io/machine", "m-1");
         n.annotation(released, "karpenter, cluster-api");
       },
       nullptr},
      {"released by another one",
       [&](NodeBuilder& n) {
         n.annotation("cluster.x-k8s.io/machine", "m-1").annotation(released, "karpenter");
       },
       "annotate kwatt.dev/released-by=cluster-api"},
      {"a word that only begins alike",
       [&](NodeBuilder& n) {
         n.annotation("cluster.x-k8s.io/machine", "m-1").annotation(released, "cluster-apis");
       },
       "Cluster API"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Plan plan = with_idle(c.given);
    CHECK((find_action<PowerOff>(plan.actions, "n1") != nullptr) == (c.says == nullptr));
    if (c.says == nullptr) continue;
    CHECK(reason_of(plan.verdicts, "n1") == "ForeignOwner");
    CHECK(plan.verdicts.at("n1").message.find(c.says) != std::string::npos);
  }
}

TEST_CASE("a maintenance lease and a health check hold a node, the latter until it is excluded") {
  const auto lease = [](planner::NodeView& n) { n.maintenance = "node-maintenance"; };
  const auto check = [](planner::NodeView& n) { n.health_check = "workers"; };
  const auto nothing = [](NodeBuilder&) {};
  Plan plan = with_idle(nothing, lease);
  CHECK(reason_of(plan.verdicts, "n1") == "ForeignOwner");
  CHECK(plan.verdicts.at("n1").message == "node-maintenance holds the node for maintenance");
  plan = with_idle(nothing, check);
  CHECK(reason_of(plan.verdicts, "n1") == "ForeignOwner");
  CHECK(plan.verdicts.at("n1").message.find("NodeHealthCheck workers") != std::string::npos);
  plan = with_idle(
      [](NodeBuilder& n) { n.label("remediation.medik8s.io/exclude-from-remediation", "true"); },
      check);
  CHECK(find_action<PowerOff>(plan.actions, "n1") != nullptr);
}

TEST_CASE("pods of owners with too few replicas stay, by the policy's own measure") {
  struct Case {
    std::int64_t min_replicas, wanted;  // -1: not known
    const char* kind;
    bool moves;
  };
  const Case cases[] = {
      {0, 1, "ReplicaSet", true},   {2, 1, "ReplicaSet", false}, {2, 2, "ReplicaSet", true},
      {2, 1, "StatefulSet", false}, {3, -1, "ReplicaSet", true}, {2, -1, "Job", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.min_replicas);
    CAPTURE(c.wanted);
    World w;
    w.node("n1");
    w.pod("default/p-1").on("n1").owner(c.kind, "p", "uid-p");
    if (c.wanted >= 0) w.replicas["uid-p"] = c.wanted;
    const planner::Snapshot s = w.snapshot();
    api::DisruptionSpec disruption;
    disruption.min_replicas = c.min_replicas;
    const planner::Candidates candidates{s, disruption};
    const auto verdict = candidates.immovable(*s.nodes.at("n1").pods[0]);
    CHECK(verdict.has_value() != c.moves);
    if (verdict) CHECK(verdict->reason == Reason::PodNotMovable);
  }
}

TEST_CASE("the breaker calls off the drains and migrations that still can be") {
  struct Case {
    const char* name;
    Kind kind;
    std::string_view step;
    bool called_off;
  };
  const Case cases[] = {
      {"a drain", Kind::PowerOff, planner::steps::kEvict, true},
      {"a drain that waits", Kind::PowerOff, planner::steps::kWaitEmpty, true},
      {"a machine that goes down already", Kind::PowerOff, planner::steps::kSoftOff, false},
      {"a migration", Kind::Migrate, planner::steps::kEvict, true},
      {"a migration being cleaned up", Kind::Migrate, planner::steps::kUndo, false},
      {"a wake", Kind::PowerOn, planner::steps::kWake, false},
  };
  for (const Case& c : cases) {
    for (const bool all : {false, true}) {
      CAPTURE(c.name);
      CAPTURE(all);
      World w;
      for (int i = 0; i < 4; ++i) {
        NodeBuilder& node = w.node("r" + std::to_string(i));
        if (all) node.not_ready();
      }
      for (int i = 0; i < 4; ++i) w.node("u" + std::to_string(i)).not_ready();
      w.node("r0").operation(c.kind, std::string(c.step));
      const Plan plan = plan_of(w, enforcing());
      REQUIRE(plan.halted == Reason::TooManyUnready);
      CHECK_FALSE(plan.halted_message.empty());
      CHECK((find_action<PowerOn>(plan.actions, "r0") != nullptr) == c.called_off);
      if (!c.called_off) continue;
      const planner::Snapshot s = w.snapshot();
      CHECK_FALSE(
          planner::admit(s, plan.actions[0], "default", enforcing(), all_nodes(s)).has_value());
      CHECK(plan.actions[0].reason == Reason::TooManyUnready);
    }
  }
}

TEST_CASE("what the breaker has said makes a drain and a migration undo themselves") {
  for (const bool migration : {false, true}) {
    CAPTURE(migration);
    Stage stage;
    stage.pod("default/web-1");
    stage.on_evict = [](const api::Pod&) {
      return planner::EvictionResult::Outcome::blocked_by_budget;
    };
    if (migration) {
      planner::Migrate what;
      what.moves.push_back({"default", "web-1", stage.pods[0].uid, "n2", "", {}});
      stage.begin(what, Reason::HighLoad);
    } else {
      stage.begin_drain();
    }
    for (int i = 0; i < 5; ++i) {
      stage.look();
      stage.tick(seconds{1});
    }
    REQUIRE(stage.busy());
    stage.status.decision.desired = api::Desired::On;
    stage.status.decision.reason = "TooManyUnready";
    REQUIRE(stage.run(minutes{1}));
    CHECK(stage.ends.back().reason == Reason::TooManyUnready);
    CHECK(stage.resets.empty());
    CHECK_FALSE(stage.node.unschedulable);
    CHECK_FALSE(stage.tainted(names::kCandidateTaint));
  }
}

TEST_CASE("a pause of the source does not make it a slow one") {
  World w;
  NodeBuilder& node = w.node("n1");
  for (const int age : {650, 640, 630, 620, 610, 10}) {
    node.sample({kNoon - seconds{age}, percent(5), percent(5), Milliwatts{}, false});
  }
  CHECK(planner::stale_after(w.snapshot().nodes.at("n1")) == seconds{30});
}

TEST_CASE("status tells which budgets bind") {
  World w;
  for (int i = 0; i < 10; ++i) w.node("n" + std::to_string(i));
  const planner::Snapshot s = w.snapshot();
  api::DisruptionSpec spec;
  spec.budgets.assign(4, api::Budget{});
  spec.budgets[0] = {"wide", "5", "", Duration{0}, {}, "", true};
  spec.budgets[1] = {"tight", "2", "", Duration{0}, {}, "", true};
  spec.budgets[2] = {"moves", "1", "", Duration{0}, {"LowUtilization"}, "", true};
  spec.budgets[3] = {"night", "0", "0 22 * * *", hours{8}, {}, "", true};  // not in force at noon
  const auto uses = planner::DisruptionBudgets{s, spec, all_nodes(s)}.uses();
  REQUIRE(uses.size() == 3);
  CHECK_FALSE(uses[0].binds);
  CHECK(uses[1].binds);
  CHECK(uses[2].binds);
}

TEST_CASE("an override that nobody understands is said of a node that is off, too") {
  World w;
  w.node("n0");
  w.node("n1").off().annotation("kwatt.dev/override", "on until=soon");
  const Plan plan = plan_of(w, enforcing());
  CHECK(plan.actions.empty());
  CHECK(reason_of(plan.verdicts, "n1") == "Manual");
  CHECK(plan.verdicts.at("n1").message.find("is not understood") != std::string::npos);
}

// ---- caps under a budget outlive controller and agents

api::EnergyPolicySpec capping_policy(std::int64_t budget) {
  api::EnergyPolicySpec spec = enforcing();
  spec.power_off.enabled = spec.power_on.enabled = false;
  spec.capping.enabled = true;
  spec.capping.budget_watts = budget;
  return spec;
}

TEST_CASE("a request says keepCap exactly when its cap belongs to a budget") {
  struct Case {
    const char* name;
    std::int64_t budget;
    std::optional<std::int64_t> watts;
    bool keep;
  };
  for (const Case& c : std::vector<Case>{{"a cap under a budget", 500, 100, true},
                                         {"a cap of its own", 0, 100, false},
                                         {"no cap any more", 500, std::nullopt, false}}) {
    CAPTURE(c.name);
    Stage stage;
    stage.spec = capping_policy(c.budget);
    stage.node.meta.annotations.set(names::kGovernor, "powersave");
    planner::RequestNote note;
    note.id = "before";
    note.keys = {std::string(names::kGovernor)};
    stage.node.meta.annotations.set(names::kRequest, planner::format_request(note));
    stage.begin(SetCap{c.watts}, Reason::PowerHigh);
    stage.look();
    const planner::RequestNote after = planner::request_on(stage.node);
    CHECK(after.id == "op-1");
    CHECK(after.keep_cap == c.keep);
    CHECK(planner::parse_request(planner::format_request(after)) == after);
  }
}

TEST_CASE("caps from before a budget are marked, and those from a former budget lose the mark") {
  World w;
  with_agent(w.node("a")).utilization(90, 125);
  capped(w.node("a"), 120);
  // A budget that leaves the machine its cap, and one that does not.
  for (const std::int64_t budget : {122, 400}) {
    const Plan plan = plan_of(w, capping_policy(budget));
    const SetCap* cap = find_action<SetCap>(plan.actions, "a");
    REQUIRE(cap != nullptr);
    CHECK(cap->watts == 120);
  }
  CHECK(find_action<SetCap>(plan_of(w, capping_policy(0)).actions, "a") == nullptr);
  planner::RequestNote note = planner::request_on(w.node("a").node());
  note.keep_cap = true;
  w.node("a").annotation(std::string(names::kRequest), planner::format_request(note));
  CHECK(find_action<SetCap>(plan_of(w, capping_policy(122)).actions, "a") == nullptr);
  const Plan plan = plan_of(w, capping_policy(0));
  const SetCap* cap = find_action<SetCap>(plan.actions, "a");
  REQUIRE(cap != nullptr);
  CHECK(cap->watts == 120);
}

TEST_CASE("a lever that is switched off gives back what it set, but nothing set by hand") {
  World w;
  capped(with_agent(w.node("a")), 100);
  slowed(with_agent(w.node("b")));
  with_agent(w.node("c")).annotation(std::string(names::kPowerCap), "100");
  api::EnergyPolicySpec spec = enforcing();
  spec.power_off.enabled = false;
  const Plan plan = plan_of(w, spec);
  REQUIRE(find_action<SetCap>(plan.actions, "a") != nullptr);
  CHECK_FALSE(find_action<SetCap>(plan.actions, "a")->watts.has_value());
  REQUIRE(find_action<planner::SetFrequency>(plan.actions, "b") != nullptr);
  CHECK(find_action<planner::SetFrequency>(plan.actions, "b")->level == api::FrequencyLevel{});
  CHECK(plan.actions.size() == 2);
  for (const planner::Action& action : plan.actions) {
    CHECK(action.reason == Reason::LeverDisabled);
    const planner::Snapshot s = w.snapshot();
    CHECK_FALSE(planner::admit(s, action, "default", spec, all_nodes(s)).has_value());
  }
}

// A machine's agent, as far as caps go: it applies what the annotations ask, keeps it over its own
// restarts and without a controller only if the request says so.
struct CapAgent {
  std::int64_t in_force = 0;  // 0: none

  static std::int64_t asked(const api::Node& node) {
    const std::string* text = node.meta.annotations.find(names::kPowerCap);
    return text == nullptr ? 0 : std::stoll(*text);
  }
  void apply(NodeBuilder& node) {
    in_force = asked(node.node());
    api::AgentReport& report = node.machine().status.report;
    report.applied_request = planner::request_on(node.node()).id;
    report.requested_cap_watts = report.effective_cap_watts = in_force;
    report.converged = true;
  }
  // It stops, or gives the controller up: nothing is reported of it.
  void let_go(NodeBuilder& node) {
    if (!planner::request_on(node.node()).keep_cap) in_force = 0;
  }
};

TEST_CASE("a budget that is kept once is kept in every second, whoever restarts") {
  constexpr std::int64_t kMaximum = 150;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::uint32_t state = seed * 2654435761u;
    const auto chance = [&](std::uint32_t n) {
      state = state * 1664525u + 1013904223u;
      return (state >> 8) % n;
    };
    World w;
    const std::size_t nodes = 2 + chance(5);
    std::vector<CapAgent> agents(nodes);
    std::vector<bool> present(nodes, true);
    const auto name = [](std::size_t i) { return "n" + std::to_string(i); };
    for (std::size_t i = 0; i < nodes; ++i) with_agent(w.node(name(i)));
    const auto budget = static_cast<std::int64_t>(nodes) * 100;
    const api::EnergyPolicySpec spec = capping_policy(budget);
    bool kept = false;
    int serial = 0, restarts = 0;
    for (int second = 0; second < 200; ++second) {
      for (std::size_t i = 0; i < nodes; ++i) {
        const std::int64_t load = chance(101);
        w.node(name(i)).utilization(load, 50 + load, minutes{2});
      }
      // The controller: away for a while now and then.
      if (second % 50 < 40) {
        for (const planner::Action& action : plan_of(w, spec).actions) {
          NodeBuilder& node = w.node(action.node);
          const planner::Snapshot s = w.snapshot();
          node.machine().status = planner::begin(s.nodes.at(action.node), action, "default", spec,
                                                 "op-" + std::to_string(++serial), kNoon);
        }
        for (std::size_t i = 0; i < nodes; ++i) {
          NodeBuilder& node = w.node(name(i));
          if (node.machine().status.operation.id.empty()) continue;
          const planner::Snapshot s = w.snapshot();
          planner::Observation seen;
          seen.now = kNoon;
          seen.node = &s.nodes.at(name(i));
          const planner::Step step = planner::next_step(node.machine().status, seen, spec);
          node.machine().status = step.next;
          for (const planner::Effect& effect : step.effects) {
            const auto& patch = std::get<planner::PatchNode>(effect);
            for (const auto& [key, value] : patch.set_annotations) node.annotation(key, value);
            for (const auto& key : patch.remove_annotations) {
              node.node().meta.annotations.erase(key);
            }
            for (const auto& [key, value] : patch.set_labels) node.label(key, value);
            for (const auto& key : patch.remove_labels) node.no_label(key);
          }
        }
      }
      for (std::size_t i = 0; i < nodes; ++i) {
        if (present[i] && chance(12) == 0) {
          agents[i].let_go(w.node(name(i)));
          present[i] = false;
          ++restarts;
        } else if (!present[i] && chance(3) == 0) {
          present[i] = true;
        } else if (present[i] && chance(3) != 0) {
          agents[i].apply(w.node(name(i)));
        }
      }
      std::int64_t sum = 0;
      for (const CapAgent& agent : agents) sum += agent.in_force > 0 ? agent.in_force : kMaximum;
      kept = kept || sum <= budget;
      if (kept) REQUIRE(sum <= budget);
    }
    CHECK(kept);
    CHECK(restarts > 5);
  }
}

TEST_CASE("needs that wander a little rewrite no caps; a real change does") {
  World w;
  constexpr std::int64_t kBudget = 420;
  const api::EnergyPolicySpec spec = capping_policy(kBudget);
  std::vector<std::int64_t> draw = {130, 95, 80, 70};
  const auto name = [](std::size_t i) { return "n" + std::to_string(i); };
  const auto pass = [&] {
    for (std::size_t i = 0; i < draw.size(); ++i) {
      with_agent(w.node(name(i))).utilization(50, draw[i], minutes{2});
    }
    int writes = 0;
    for (const planner::Action& action : plan_of(w, spec).actions) {
      const auto* cap = std::get_if<SetCap>(&action.what);
      if (cap == nullptr) continue;
      ++writes;
      NodeBuilder& node = w.node(action.node);
      if (!cap->watts) {
        node.node().meta.annotations = {};
        node.machine().status.report.effective_cap_watts = 0;
        continue;
      }
      budgeted(node, *cap->watts);
    }
    return writes;
  };
  for (int i = 0; i < 6; ++i) pass();  // settles
  int writes = 0;
  for (int i = 0; i < 60; ++i) {
    for (std::size_t n = 0; n < draw.size(); ++n)
      draw[n] += (i + static_cast<int>(n)) % 2 == 0 ? 1 : -1;
    writes += pass();
  }
  CHECK(writes <= 2);  // not one a pass, and not one each way
  writes = 0;
  std::swap(draw[0], draw[3]);
  for (int i = 0; i < 6; ++i) writes += pass();
  CHECK(writes >= 2);
  CHECK(planner::PowerLedger{w.snapshot(), all_nodes(w.snapshot()), kBudget}.bound() <= kBudget);
}

}  // namespace
}  // namespace kwatt::test

TEST_SUITE_END();
