// admit(): the last look before an operation is committed.
#include <functional>

#include <doctest/doctest.h>

#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::Action;
using planner::PowerOff;
using planner::PowerOn;
using planner::Reason;
using planner::SetCap;
using planner::SetFrequency;

struct Changes {
  World& world;
  api::EnergyPolicySpec& spec;
  Action& action;
  std::vector<planner::NodeName>* selected = nullptr;
};
struct Case {
  const char* name;
  std::function<void(Changes&)> happens;
  std::string refused;  // "" : admitted
};

// The action is decided in `world`; then something happens; is it still right?
void check(const std::vector<Case>& cases, const std::function<World()>& world,
           const std::function<Action()>& decided, const api::EnergyPolicySpec& policy) {
  for (const Case& c : cases) {
    const std::string name = c.name;
    CAPTURE(name);
    World w = world();
    api::EnergyPolicySpec spec = policy;
    Action action = decided();
    action.pre.node_uid = "uid-" + action.node;
    Changes changes{w, spec, action};
    std::vector<planner::NodeName> selected = all_nodes(w.snapshot());
    changes.selected = &selected;
    c.happens(changes);
    const auto verdict = planner::admit(w.snapshot(), action, "default", spec, selected);
    CHECK((verdict ? std::string(api::to_string(verdict->reason)) : "") == c.refused);
  }
}

Action make(const std::string& node, planner::What what, Reason reason) {
  Action action;
  action.node = node;
  action.what = std::move(what);
  action.reason = reason;
  return action;
}

TEST_CASE("admit: a power-off is checked against everything that made it right") {
  const auto world = [] {
    World w;
    w.node("n1");
    w.node("n2").idle_for(hours{1});
    w.node("n3");
    w.pod("default/web-1").on("n2");
    return w;
  };
  const auto decided = [] {
    PowerOff off;
    off.moves.push_back({"default", "web-1", "uid-default/web-1", "n1", "", {}});
    return make("n2", off, Reason::LowUtilization);
  };
  const std::vector<Case> cases = {
      {"nothing happened", [](Changes&) {}, ""},
      {"another Node of that name", [](Changes& c) { c.action.pre.node_uid = "x"; }, "NotSelected"},
      {"another policy has it now",
       [](Changes& c) {
         *c.selected = {"n1", "n3"};
       },
       "NotSelected"},
      {"the policy only recommends", [](Changes& c) { c.spec.mode = api::Mode::Recommend; },
       "RecommendOnly"},
      {"the policy is suspended", [](Changes& c) { c.spec.suspend = true; }, "Suspended"},
      {"excluded", [](Changes& c) { c.world.node("n2").annotation("kwatt.dev/exclude", "true"); },
       "Excluded"},
      {"an operation has begun",
       [](Changes& c) { c.world.node("n2").operation(api::OperationKind::SetCap); }, "InProgress"},
      {"it is off", [](Changes& c) { c.world.node("n2").off(); }, "InProgress"},
      {"it is not Ready", [](Changes& c) { c.world.node("n2").not_ready(); }, "NodeNotReady"},
      {"cordoned by somebody", [](Changes& c) { c.world.node("n2").cordoned(); }, "ForeignOwner"},
      {"its driver is gone", [](Changes& c) { c.world.node("n2").no_driver(); }, "NoDriver"},
      {"cooling down", [](Changes& c) { c.world.node("n2").cool_down(minutes{1}); }, "CoolDown"},
      {"a pod has come", [](Changes& c) { c.world.pod("default/new-1").on("n2"); }, "InUse"},
      {"a DaemonSet pod has come",
       [](Changes& c) { c.world.pod("kube-system/ds-1").on("n2").daemon(); }, ""},
      {"the pod is another one now",
       [](Changes& c) { c.world.pod("default/web-1").pod().uid = "other"; }, "InUse"},
      {"the pod has gone already", [](Changes& c) { c.world.pod("default/web-1").on("n3"); }, ""},
      {"the pod is vetoed now",
       [](Changes& c) {
         c.world.pod("default/web-1").annotation("kwatt.dev/do-not-disrupt", "true");
       },
       "DoNotDisrupt"},
      {"its budget is used up",
       [](Changes& c) {
         c.world.pod("default/web-1").label("app", "web");
         c.world.budget("default/web", "app", "web", 0);
       },
       "PDBBlocked"},
      {"its destination is gone",
       [](Changes& c) {
         c.action.what = PowerOff{{{"default", "web-1", "uid-default/web-1", "n9", "", {}}}, false};
       },
       "NoDestination"},
      {"its destination is leaving",
       [](Changes& c) { c.world.node("n1").operation(api::OperationKind::PowerOff); },
       "NoDestination"},
      {"too few would be awake", [](Changes& c) { c.spec.power_off.min_awake = 3; }, "MinAwake"},
      {"the budget is used up",
       [](Changes& c) {
         c.spec.disruption.budgets[0].nodes = "1";
         c.world.node("n3").operation(api::OperationKind::Migrate);
       },
       "BudgetExhausted"},
      {"too many are unready",
       [](Changes& c) {
         for (int i = 0; i < 5; ++i) {
           c.world.node("u" + std::to_string(i)).not_ready();
           c.selected->push_back("u" + std::to_string(i));
         }
       },
       "TooManyUnready"},
  };
  check(cases, world, decided, enforcing());
}

TEST_CASE("admit: a power-on") {
  const auto world = [] {
    World w;
    w.node("n1");
    w.node("n2").off();
    return w;
  };
  const auto decided = [] { return make("n2", PowerOn{}, Reason::PendingPods); };
  const std::vector<Case> cases = {
      {"nothing happened", [](Changes&) {}, ""},
      {"somebody holds it off",
       [](Changes& c) { c.world.node("n2").annotation("kwatt.dev/override", "off"); }, "Manual"},
      {"a drain that can be called off",
       [](Changes& c) { c.world.node("n2").operation(api::OperationKind::PowerOff, "Evict"); }, ""},
      {"a shutdown under way",
       [](Changes& c) { c.world.node("n2").operation(api::OperationKind::PowerOff, "SoftOff"); },
       "InProgress"},
      {"its driver is gone", [](Changes& c) { c.world.node("n2").no_driver(); }, "NoDriver"},
      {"no power left for it",
       [](Changes& c) {
         c.spec.capping.enabled = true;
         c.spec.capping.budget_watts = 200;
       },
       "OverBudget"},
      {"many unready are no obstacle",
       [](Changes& c) {
         for (int i = 0; i < 9; ++i) c.world.node("u" + std::to_string(i)).not_ready();
       },
       ""},
  };
  check(cases, world, decided, enforcing());
}

TEST_CASE("admit: settings") {
  const auto world = [] {
    World w;
    with_agent(w.node("n1"));
    with_agent(w.node("n2"));
    return w;
  };
  api::EnergyPolicySpec spec = enforcing();
  spec.capping.enabled = true;
  const std::vector<Case> cap = {
      {"nothing happened", [](Changes&) {}, ""},
      {"set by hand",
       [](Changes& c) { c.world.node("n1").annotation("kwatt.dev/power-cap-watts", "90"); },
       "Manual"},
      {"out of range", [](Changes& c) { c.action.what = SetCap{59}; }, "OutOfRange"},
      {"out of range above", [](Changes& c) { c.action.what = SetCap{141}; }, "OutOfRange"},
      {"a release needs no range", [](Changes& c) { c.action.what = SetCap{std::nullopt}; }, ""},
      {"a raise beyond the budget",
       [](Changes& c) {
         c.spec.capping.budget_watts = 260;
         capped(c.world.node("n1"), 100);
         c.action.what = SetCap{120};
       },
       "OverBudget"},
      {"lowering is always within it", [](Changes& c) { c.spec.capping.budget_watts = 100; }, ""},
  };
  check(
      cap, world, [] { return make("n1", SetCap{120}, Reason::PowerHigh); }, spec);
  const std::vector<Case> frequency = {
      {"nothing happened", [](Changes&) {}, ""},
      {"set by hand", [](Changes& c) { c.world.node("n1").annotation("kwatt.dev/governor", "x"); },
       "Manual"},
      {"a cap by hand is another matter",
       [](Changes& c) { c.world.node("n1").annotation("kwatt.dev/power-cap-watts", "90"); }, ""},
      {"control plane", [](Changes& c) { c.world.node("n1").control_plane(); }, "ControlPlane"},
      {"not Ready", [](Changes& c) { c.world.node("n1").not_ready(); }, "NodeNotReady"},
  };
  check(
      frequency, world,
      [] {
        return make("n1", SetFrequency{{"powersave", 0, ""}, true}, Reason::LowUtilization);
      },
      spec);
}

TEST_CASE("admit: a release is admitted whatever the policy says, but not into an operation") {
  const auto world = [] {
    World w;
    slowed(with_agent(w.node("n1")));
    return w;
  };
  const std::vector<Case> cases = {
      {"suspended", [](Changes& c) { c.spec.suspend = true; }, ""},
      {"recommending", [](Changes& c) { c.spec.mode = api::Mode::Recommend; }, ""},
      {"not selected", [](Changes& c) { c.selected->clear(); }, ""},
      {"busy", [](Changes& c) { c.world.node("n1").operation(api::OperationKind::SetFrequency); },
       "InProgress"},
  };
  check(
      cases, world, [] { return make("n1", planner::Release{}, Reason::NotSelected); },
      enforcing());
}

}  // namespace
}  // namespace kwatt::test
