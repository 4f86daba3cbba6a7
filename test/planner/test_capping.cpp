// The capping lever: thresholds, ranges, pods first, and a budget shared among machines.
#include <functional>

#include <doctest/doctest.h>

#include "planner/cap_budget.hpp"
#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::CapFacts;
using planner::Migrate;
using planner::PowerOn;
using planner::SetCap;
using Names = std::vector<std::string>;

api::EnergyPolicySpec capping_policy(std::int64_t budget = 0) {
  api::EnergyPolicySpec spec = enforcing();
  spec.capping.enabled = true;
  spec.capping.budget_watts = budget;
  return spec;
}

TEST_CASE("capping: above the threshold it caps, below the release point it releases") {
  struct Case {
    const char* name;
    std::int64_t draw;  // of 150 W
    std::int64_t cap;   // in force; 0: none
    std::optional<SetCap> action;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"far below", 60, 0, std::nullopt, "InUse"},
      {"just at 90 %", 135, 0, std::nullopt, "InUse"},
      {"above 90 %", 136, 0, SetCap{120}, "PowerHigh"},
      {"capped, draws its cap", 120, 120, std::nullopt, "PowerHigh"},
      {"capped, just at 70 %", 105, 120, std::nullopt, "PowerHigh"},
      {"capped, below 70 %", 104, 120, SetCap{std::nullopt}, "LowUtilization"},
      {"capped lower than the policy now wants", 110, 110, SetCap{120}, "PowerHigh"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    with_agent(w.node("n1")).utilization(80, c.draw);
    if (c.cap > 0) capped(w.node("n1"), c.cap);
    OnePass p{w.snapshot(), capping_policy()};
    const planner::Proposal proposal = planner::capping(p.pass);
    if (!c.action) {
      CHECK(proposal.actions.empty());
      CHECK(reason_of(proposal.refusals, "n1") == c.reason);
      continue;
    }
    REQUIRE(proposal.actions.size() == 1);
    CHECK(std::get<SetCap>(proposal.actions[0].what) == *c.action);
    CHECK(api::to_string(proposal.actions[0].reason) == c.reason);
  }
}

TEST_CASE("capping: what is refused, and why") {
  struct Case {
    const char* name;
    std::function<void(NodeBuilder&)> given;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"no meter", [](NodeBuilder& n) { n.utilization(95); }, "StaleTelemetry"},
      {"too few readings", [](NodeBuilder& n) { n.utilization(95, 95, 149, seconds{20}); },
       "StaleTelemetry"},
      {"old readings", [](NodeBuilder& n) { n.utilization(95, 95, 149, minutes{5}, minutes{2}); },
       "StaleTelemetry"},
      {"the machine cannot cap",
       [](NodeBuilder& n) {
         n.machine().status.report.cap_min_watts = n.machine().status.report.cap_max_watts = 0;
       },
       "OutOfRange"},
      {"below the range",
       [](NodeBuilder& n) {
         n.machine().spec.cap_range = {130, 150};
       },
       "OutOfRange"},
      {"above the range",
       [](NodeBuilder& n) {
         n.machine().spec.cap_range = {40, 110};
       },
       "OutOfRange"},
      {"by hand", [](NodeBuilder& n) { n.annotation("kwatt.dev/power-cap-watts", "100"); },
       "Manual"},
      {"no agent", [](NodeBuilder& n) { n.machine().status.report.boot_id.clear(); }, "AgentStale"},
      {"control plane", [](NodeBuilder& n) { n.control_plane(); }, "ControlPlane"},
      {"busy", [](NodeBuilder& n) { n.operation(api::OperationKind::SetFrequency); }, "InProgress"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(with_agent(w.node("n1")).utilization(95, 149));
    OnePass p{w.snapshot(), capping_policy()};
    const planner::Proposal proposal = planner::capping(p.pass);
    CHECK(proposal.actions.empty());
    CHECK(reason_of(proposal.refusals, "n1") == c.reason);
  }
}

TEST_CASE("capping: the maximum is the model's, else the range's, else the agent's, else a guess") {
  World w;
  NodeBuilder& node = with_agent(w.node("n1"));
  const auto maximum = [&] { return planner::cap_facts(w.snapshot().nodes.at("n1")).maximum; };
  node.machine().spec.cap_range = {0, 130};
  CHECK(maximum() == 150);
  node.no_model();
  CHECK(maximum() == 130);
  node.machine().spec.cap_range = {};
  CHECK(maximum() == 140);
  node.machine().status.report.cap_max_watts = 0;
  CHECK(maximum() > 50);
}

TEST_CASE("capping migration: pods first, then a window of peace, then the cap") {
  World w;
  with_agent(w.node("hot")).utilization(95, 149);
  for (int i = 1; i <= 6; ++i) {
    w.pod("default/p" + std::to_string(i) + "-1").on("hot").cpu_milli(100 * i);
  }
  with_agent(w.node("idle")).cpu(64).utilization(2, 55);
  api::EnergyPolicySpec spec = capping_policy();
  spec.capping.migration = {true, 3};
  const auto actions = [&] {
    OnePass p{w.snapshot(), spec};
    return planner::capping(p.pass);
  };
  const Migrate* migrate = nullptr;
  const planner::Proposal first = actions();
  migrate = find_action<Migrate>(first.actions, "hot");
  REQUIRE(migrate != nullptr);
  CHECK(migrate->moves.size() <= 3);
  CHECK(migrate->moves[0].node_name == "idle");
  CHECK(first.actions[0].reason == planner::Reason::PowerHigh);

  w.node("hot").cool_down(seconds{40});
  const planner::Proposal settling = actions();
  CHECK(settling.actions.empty());
  CHECK(reason_of(settling.refusals, "hot") == "CoolDown");
  CHECK(settling.next_wake == seconds{40});

  w.node("hot").cool_down(-seconds{5});
  CHECK(nodes_of<SetCap>(actions().actions) == Names{"hot"});
  // Much later pods are tried again first.
  w.node("hot").cool_down(-minutes{10});
  CHECK(nodes_of<Migrate>(actions().actions) == Names{"hot"});
  // The pause after a failed drain does not keep it from being capped.
  w.node("hot").cool_down(minutes{3});
  CHECK(nodes_of<SetCap>(actions().actions) == Names{"hot"});
  // Nowhere to go: capped at once.
  w.node("hot").cool_down(-minutes{10});
  w.node("idle").cordoned();
  CHECK(nodes_of<SetCap>(actions().actions) == Names{"hot"});
}

TEST_CASE("budget: shares keep within it, by need") {
  struct Case {
    const char* name;
    std::int64_t budget;
    std::vector<planner::ShareOf> shares;
    std::vector<std::int64_t> want;  // empty: impossible
  };
  const std::vector<Case> cases = {
      {"enough for all", 400, {{"a", 60, 150, 80}, {"b", 60, 150, 150}}, {150, 150}},
      {"need first", 240, {{"a", 60, 150, 70}, {"b", 60, 150, 150}}, {79, 160 - 1}},
      {"floors only", 120, {{"a", 60, 150, 150}, {"b", 60, 150, 150}}, {60, 60}},
      {"not even that", 119, {{"a", 60, 150, 150}, {"b", 60, 150, 150}}, {}},
      {"equal need", 200, {{"a", 60, 150, 150}, {"b", 60, 150, 150}}, {100, 100}},
      {"no machines", 100, {}, {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto given = planner::share_power(c.budget, c.shares);
    if (c.want.empty()) {
      CHECK(given.has_value() == c.shares.empty());
      continue;
    }
    REQUIRE(given.has_value());
    std::int64_t sum = 0;
    for (const auto& [name, watts] : *given) sum += watts;
    CHECK(sum <= c.budget);
    for (const planner::ShareOf& share : c.shares) {
      CHECK(given->at(share.name) >= share.floor);
      CHECK(given->at(share.name) <= share.ceiling);
    }
    if (std::string(c.name) != "need first") {
      CHECK(given->at("a") == c.want[0]);
      CHECK(given->at("b") == c.want[1]);
    } else {
      CHECK(given->at("b") == 150);
      CHECK(given->at("a") >= 70);
    }
  }
}

TEST_CASE("budget: a cap counts once it is confirmed, a change at its higher end") {
  struct Case {
    const char* name;
    std::function<void(NodeBuilder&)> given;
    std::int64_t bound;
  };
  using Kind = api::OperationKind;
  const std::vector<Case> cases = {
      {"uncapped", [](NodeBuilder&) {}, 150},
      {"capped and confirmed", [](NodeBuilder& n) { capped(n, 100); }, 100},
      {"capped, not confirmed", [](NodeBuilder& n) { capped(n, 100, false); }, 150},
      {"the agent has a higher one",
       [](NodeBuilder& n) {
         capped(n, 100);
         n.machine().status.report.effective_cap_watts = 110;
       },
       150},
      {"not converged",
       [](NodeBuilder& n) {
         capped(n, 100);
         n.machine().status.report.converged = false;
       },
       150},
      {"being raised",
       [](NodeBuilder& n) {
         capped(n, 100).operation(Kind::SetCap, "Annotate");
         n.machine().status.operation.request.power_cap_watts = 130;
       },
       130},
      {"being lowered",
       [](NodeBuilder& n) {
         capped(n, 100).operation(Kind::SetCap, "Annotate");
         n.machine().status.operation.request.power_cap_watts = 80;
       },
       100},
      {"being released", [](NodeBuilder& n) { capped(n, 100).operation(Kind::SetCap, "Annotate"); },
       150},
      {"off", [](NodeBuilder& n) { n.off(); }, 0},
      {"off with a cap", [](NodeBuilder& n) { capped(n, 100).off(); }, 0},
      {"coming on: its cap is not there yet",
       [](NodeBuilder& n) { capped(n, 100).off().operation(Kind::PowerOn, "Wake"); }, 150},
      {"could not be woken, as far as we know",
       [](NodeBuilder& n) { n.off().state(api::PowerState::WakeFailed); }, 150},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(with_agent(w.node("n1")));
    CHECK(planner::cap_facts(w.snapshot().nodes.at("n1")).bound == c.bound);
  }
}

TEST_CASE("budget: lowered first; raised only when the others are confirmed") {
  World w;
  with_agent(w.node("a")).utilization(90, 130);
  with_agent(w.node("b")).utilization(10, 60);
  const api::EnergyPolicySpec spec = capping_policy(250);
  planner::Plan plan = plan_of(w, spec);
  // Two machines of 150 W each share 250 W: b needs little.
  const SetCap* b = find_action<SetCap>(plan.actions, "b");
  REQUIRE(b != nullptr);
  REQUIRE(b->watts.has_value());
  CHECK(*b->watts <= 110);

  // b has its cap: nothing more of it while a is at its maximum.
  budgeted(w.node("b"), *b->watts);
  plan = plan_of(w, spec);
  CHECK(find_action<SetCap>(plan.actions, "b") == nullptr);

  // The load moves: b wants more, a less. b must wait until a is down.
  w.node("a").utilization(5, 55);
  w.node("b").utilization(90, *b->watts);
  plan = plan_of(w, spec);
  const SetCap* a = find_action<SetCap>(plan.actions, "a");
  REQUIRE(a != nullptr);
  CHECK(find_action<SetCap>(plan.actions, "b") == nullptr);
  CHECK(reason_of(plan.verdicts, "b") == "OverBudget");

  budgeted(w.node("a"), *a->watts, false);  // asked for, not confirmed
  CHECK(find_action<SetCap>(plan_of(w, spec).actions, "b") == nullptr);
  budgeted(w.node("a"), *a->watts);
  plan = plan_of(w, spec);
  REQUIRE(find_action<SetCap>(plan.actions, "b") != nullptr);
  const auto more = find_action<SetCap>(plan.actions, "b")->watts;
  CHECK(more.value_or(150) + *a->watts <= 250);
}

TEST_CASE("budget: shares do not swing while a cap is on its way") {
  World w;
  with_agent(w.node("a")).utilization(90, 130);
  with_agent(w.node("b")).utilization(90, 130);
  const api::EnergyPolicySpec spec = capping_policy(240);
  // a has been told 120 W and has not confirmed it; b's share is what it will be then.
  w.node("a").operation(api::OperationKind::SetCap, "WaitApplied");
  w.node("a").machine().status.operation.request.power_cap_watts = 120;
  planner::Plan plan = plan_of(w, spec);
  const SetCap* b = find_action<SetCap>(plan.actions, "b");
  REQUIRE(b != nullptr);
  CHECK(b->watts == 120);
  CHECK(plan.actions[0].reason == planner::Reason::PowerHigh);
  // Being raised: the others have been lowered for it, and stay so.
  w.node("a").machine().status.operation.request.power_cap_watts = 100;
  budgeted(w.node("b"), 140);
  plan = plan_of(w, spec);
  CHECK(find_action<SetCap>(plan.actions, "b") == nullptr);
}

TEST_CASE("budget: below the sum of the least caps it says OverBudget and caps as low as it may") {
  World w;
  with_agent(w.node("a")).utilization(90, 140);
  with_agent(w.node("b")).utilization(90, 140);
  const api::EnergyPolicySpec spec = capping_policy(110);
  planner::Plan plan = plan_of(w, spec);
  REQUIRE(find_action<SetCap>(plan.actions, "a") != nullptr);
  CHECK(find_action<SetCap>(plan.actions, "a")->watts == 60);
  CHECK(plan.actions[0].reason == planner::Reason::OverBudget);
  budgeted(w.node("a"), 60);
  budgeted(w.node("b"), 60);
  plan = plan_of(w, spec);
  CHECK(plan.actions.empty());
  CHECK(reason_of(plan.verdicts, "a") == "OverBudget");
}

TEST_CASE("budget: a node is woken only when there is power for it") {
  World w;
  with_agent(w.node("a")).utilization(50, 100);
  with_agent(w.node("b")).utilization(50, 100);
  w.pod("default/web-1").on("a").cpu_milli(3500);
  w.pod("default/web-2").on("b").cpu_milli(3500);
  with_agent(w.node("off")).off();
  w.pod("default/new-1").cpu_milli(3000);
  const api::EnergyPolicySpec spec = capping_policy(400);
  planner::Plan plan = plan_of(w, spec);
  CHECK(find_action<PowerOn>(plan.actions, "off") == nullptr);
  CHECK(reason_of(plan.verdicts, "off") == "OverBudget");
  // Room is made: a and b together go down to 250 W.
  const SetCap* a = find_action<SetCap>(plan.actions, "a");
  const SetCap* b = find_action<SetCap>(plan.actions, "b");
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(*a->watts + *b->watts <= 250);
  budgeted(w.node("a"), *a->watts);
  budgeted(w.node("b"), *b->watts);
  plan = plan_of(w, spec);
  CHECK(find_action<PowerOn>(plan.actions, "off") != nullptr);
}

TEST_CASE("budget: small changes are not worth a patch") {
  World w;
  with_agent(w.node("a")).utilization(50, 100);
  with_agent(w.node("b")).utilization(50, 98);
  budgeted(w.node("a"), 122);
  budgeted(w.node("b"), 124);
  CHECK(plan_of(w, capping_policy(250)).actions.empty());
}

}  // namespace
}  // namespace kwatt::test
