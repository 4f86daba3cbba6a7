// A pod that kube-scheduler sends to a slow or capped node brings back its full speed.
#include <functional>

#include <doctest/doctest.h>

#include "planner/arrival.hpp"
#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::SetCap;
using planner::SetFrequency;

api::EnergyPolicySpec slowing() {
  api::EnergyPolicySpec spec = enforcing();
  spec.dvfs.enabled = true;
  return spec;
}
api::EnergyPolicySpec capping() {
  api::EnergyPolicySpec spec = enforcing();
  spec.capping.enabled = true;
  return spec;
}

// Our request note says that the settings were written so long before noon.
void written(NodeBuilder& node, Duration ago) {
  planner::RequestNote note = planner::request_on(node.node());
  note.time = kNoon - ago;
  node.node().meta.annotations.set(planner::names::kRequest, planner::format_request(note));
}

}  // namespace

TEST_CASE("arrival: which pods bring a slow node back to full speed") {
  struct Case {
    const char* name;
    std::function<void(World&)> given;
    bool restored;
  };
  const std::vector<Case> cases = {
      {"none", [](World&) {}, false},
      {"scheduled after it was slowed down",
       [](World& w) { w.pod("default/web-1").on("n1").pending_for(minutes{1}); }, true},
      {"scheduled before",
       [](World& w) { w.pod("default/web-1").on("n1").pending_for(minutes{30}); }, false},
      {"a DaemonSet's",
       [](World& w) {
         w.pod("default/log-1").owner("DaemonSet", "log").on("n1").pending_for(minutes{1});
       },
       false},
      {"announced by the extender's bind",
       [](World& w) {
         w.node("n1").annotation(std::string(planner::names::kRestore),
                                 planner::format_restore({"default/web-1", kNoon - seconds{1}}));
       },
       true},
      {"announced long ago",
       [](World& w) {
         w.node("n1").annotation(std::string(planner::names::kRestore),
                                 planner::format_restore({"default/web-1", kNoon - hours{1}}));
       },
       false},
      {"announced in words nobody knows",
       [](World& w) { w.node("n1").annotation(std::string(planner::names::kRestore), "please"); },
       false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    written(slowed(with_agent(w.node("n1"))).utilization(5, 5, 0, minutes{5}), minutes{10});
    c.given(w);
    const planner::Plan plan = plan_of(w, slowing());
    const auto* set = find_action<SetFrequency>(plan.actions, "n1");
    CHECK((set != nullptr) == c.restored);
    if (set == nullptr) continue;
    CHECK_FALSE(set->low);
    CHECK(plan.actions.front().reason == planner::Reason::Scheduled);
    CHECK(plan.actions.front().message.find("default/web-1") != std::string::npos);
  }
}

TEST_CASE("arrival: a node at full speed is not slowed down before a new pod's load can be seen") {
  World w;
  with_agent(w.node("n1")).utilization(5, 5, 0, minutes{5});
  w.pod("default/web-1").on("n1").pending_for(seconds{20});
  api::EnergyPolicySpec spec = slowing();
  spec.power_off.enabled = false;  // it would say InUse, which comes first
  const planner::Plan plan = plan_of(w, spec);
  CHECK(plan.actions.empty());
  CHECK(reason_of(plan.verdicts, "n1") == "Scheduled");
  REQUIRE(plan.next_wake);
  CHECK(*plan.next_wake <= seconds{40});
}

TEST_CASE("arrival: a cap is released for a pod, unless a budget needs it") {
  for (const bool budget : {false, true}) {
    CAPTURE(budget);
    World w;
    auto& node = with_agent(w.node("n1")).utilization(90, 90, 115, minutes{5});
    written(budget ? budgeted(node, 120) : capped(node, 120), minutes{10});
    w.pod("default/web-1").on("n1").pending_for(minutes{1});
    api::EnergyPolicySpec spec = capping();
    if (budget) spec.capping.budget_watts = 120;
    const planner::Plan plan = plan_of(w, spec);
    const auto* set = find_action<SetCap>(plan.actions, "n1");
    if (budget) {
      CHECK((set == nullptr || set->watts.has_value()));
    } else {
      REQUIRE(set != nullptr);
      CHECK_FALSE(set->watts.has_value());
      CHECK(plan.actions.front().reason == planner::Reason::Scheduled);
    }
  }
}

TEST_CASE("arrival: the annotation reads back, and nothing else is taken for one") {
  const planner::Arrival arrival{"shop/web-\"1\"", kNoon};
  const auto back = planner::parse_restore(planner::format_restore(arrival));
  REQUIRE(back);
  CHECK(back->pod == arrival.pod);
  CHECK(back->at == arrival.at);
  for (const char* bad :
       {"", "{}", "[]", R"({"pod":1,"time":"x"})", R"({"pod":"a","time":"soon"})"}) {
    CHECK_FALSE(planner::parse_restore(bad));
  }
}

}  // namespace kwatt::test
