// Who enforces a cap: capping.method against what the machine's BMC offers.
#include <functional>

#include <doctest/doctest.h>

#include "planner/cap_budget.hpp"
#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

TEST_SUITE_BEGIN("redfish");

using api::CapBy;
using api::CapMethod;
using planner::SetCap;

api::EnergyPolicySpec capping_policy(CapMethod method, std::int64_t budget = 0) {
  api::EnergyPolicySpec spec = enforcing();
  spec.capping.enabled = true;
  spec.capping.method = method;
  spec.capping.budget_watts = budget;
  return spec;
}

// A machine of 150 W that draws `watts`, whose BMC takes limits from 55 to 145 W.
NodeBuilder& with_limit(NodeBuilder& node, std::int64_t watts) {
  node.utilization(80, watts);
  node.machine().status.bmc.power_limit = true;
  node.machine().status.bmc.cap_min_watts = 55;
  node.machine().status.bmc.cap_max_watts = 145;
  return node;
}

NodeBuilder& capped_by_bmc(NodeBuilder& node, std::int64_t watts, std::int64_t effective) {
  api::BmcStatus& bmc = node.machine().status.bmc;
  bmc.original_known = true;
  bmc.requested_cap_watts = watts;
  bmc.effective_cap_watts = effective;
  node.machine().status.memory.owner_policy = "default";
  return node;
}

planner::Proposal capping_of(World& world, CapMethod method, std::int64_t budget = 0) {
  OnePass p{world.snapshot(), capping_policy(method, budget)};
  return planner::capping(p.pass);
}

TEST_CASE("capping method: who is asked, and what stands in the way") {
  struct Case {
    const char* name;
    CapMethod method;
    std::function<void(NodeBuilder&)> given;
    std::optional<CapBy> by;
    std::string reason;
  };
  const auto nothing = [](NodeBuilder&) {};
  const auto no_limit = [](NodeBuilder& n) { n.machine().status.bmc = {}; };
  const Case cases[] = {
      {"Auto with a limit", CapMethod::Auto, nothing, CapBy::BMC, ""},
      {"Auto without one", CapMethod::Auto, no_limit, CapBy::RAPL, ""},
      {"Auto, the driver is gone", CapMethod::Auto, [](NodeBuilder& n) { n.no_driver(); },
       CapBy::RAPL, ""},
      {"RAPL in spite of a limit", CapMethod::RAPL, nothing, CapBy::RAPL, ""},
      {"BMC", CapMethod::BMC, nothing, CapBy::BMC, ""},
      {"BMC without a limit", CapMethod::BMC, no_limit, std::nullopt, "OutOfRange"},
      {"BMC without a driver", CapMethod::BMC, [](NodeBuilder& n) { n.no_driver(); }, std::nullopt,
       "NoDriver"},
      {"BMC without an agent", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.report = {}; }, CapBy::BMC, ""},
      {"RAPL without an agent", CapMethod::RAPL,
       [](NodeBuilder& n) { n.machine().status.report = {}; }, std::nullopt, "AgentStale"},
      {"a cap by hand", CapMethod::BMC,
       [](NodeBuilder& n) { n.annotation("kwatt.dev/power-cap-watts", "99"); }, std::nullopt,
       "Manual"},
      {"out of its range", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.bmc.cap_min_watts = 121; }, std::nullopt,
       "OutOfRange"},
      {"somebody else's lower limit", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.bmc.effective_cap_watts = 120; }, std::nullopt,
       "OutOfRange"},
      {"somebody else's higher limit", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.bmc.effective_cap_watts = 140; }, CapBy::BMC, ""},
      {"it has failed a moment ago", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.bmc.next_attempt = kNoon + seconds{1}; },
       std::nullopt, "BMCError"},
      {"its pause is over", CapMethod::BMC,
       [](NodeBuilder& n) { n.machine().status.bmc.next_attempt = kNoon; }, CapBy::BMC, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(with_limit(with_agent(w.node("n1")), 149));
    const planner::Proposal proposal = capping_of(w, c.method);
    if (!c.by) {
      CHECK(proposal.actions.empty());
      CHECK(reason_of(proposal.refusals, "n1") == c.reason);
      continue;
    }
    REQUIRE(proposal.actions.size() == 1);
    CHECK(std::get<SetCap>(proposal.actions[0].what) == SetCap{120, *c.by});
    // admit() sees it the same way.
    const planner::Snapshot snapshot = w.snapshot();
    const auto refusal = planner::admit(snapshot, proposal.actions[0], "default",
                                        capping_policy(c.method), all_nodes(snapshot));
    CHECK_FALSE(refusal.has_value());
  }
}

TEST_CASE("capping by BMC: held, lost, released, and moved to the other way") {
  struct Case {
    const char* name;
    CapMethod method;
    std::int64_t draw, effective;
    std::optional<SetCap> action;
  };
  const Case cases[] = {
      {"in force", CapMethod::Auto, 118, 120, std::nullopt},
      {"in force, rounded", CapMethod::BMC, 118, 118, std::nullopt},
      {"lost", CapMethod::Auto, 140, 0, SetCap{120, CapBy::BMC}},
      {"raised by somebody", CapMethod::Auto, 140, 145, SetCap{120, CapBy::BMC}},
      {"released", CapMethod::Auto, 90, 120, SetCap{std::nullopt, CapBy::BMC}},
      {"released although the policy now wants RAPL", CapMethod::RAPL, 90, 120,
       SetCap{std::nullopt, CapBy::BMC}},
      {"moved to the agent", CapMethod::RAPL, 118, 120, SetCap{120, CapBy::RAPL}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    capped_by_bmc(with_limit(with_agent(w.node("n1")), c.draw), 120, c.effective);
    const planner::Proposal proposal = capping_of(w, c.method);
    if (!c.action) {
      CHECK(proposal.actions.empty());
      CHECK(reason_of(proposal.refusals, "n1") == "PowerHigh");
      continue;
    }
    REQUIRE(proposal.actions.size() == 1);
    CHECK(std::get<SetCap>(proposal.actions[0].what) == *c.action);
  }
  World w;
  capped(with_limit(with_agent(w.node("n1")), 118), 120);
  const planner::Proposal proposal = capping_of(w, CapMethod::Auto);
  REQUIRE(proposal.actions.size() == 1);
  CHECK(std::get<SetCap>(proposal.actions[0].what) == SetCap{120, CapBy::BMC});
}

TEST_CASE("capping by BMC: a bound is what the BMC is known to enforce") {
  struct Case {
    const char* name;
    std::int64_t requested, effective, bound;
  };
  const Case cases[] = {
      {"confirmed", 100, 100, 100},           {"rounded", 100, 96, 100},
      {"not yet confirmed", 100, 0, 150},     {"being lowered", 80, 100, 100},
      {"somebody else's alone", 0, 100, 150},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    with_limit(w.node("n1"), 90);
    capped_by_bmc(w.node("n1"), c.requested, c.effective);
    w.node("n1").machine().status.bmc.original_known = c.requested > 0;
    CHECK(planner::cap_facts(w.snapshot().nodes.at("n1")).bound == c.bound);
  }
}

TEST_CASE("capping by BMC: the range is the BMC's, else what people say, else the model's") {
  World w;
  NodeBuilder& node = with_limit(w.node("n1"), 90);
  const auto facts = [&] {
    return planner::cap_facts(w.snapshot().nodes.at("n1"), CapMethod::BMC);
  };
  node.machine().spec.cap_range = {70, 130};
  CHECK(facts().cap_min == 55);
  CHECK(facts().cap_max == 145);
  node.machine().status.bmc.cap_min_watts = node.machine().status.bmc.cap_max_watts = 0;
  CHECK(facts().cap_min == 70);
  CHECK(facts().cap_max == 130);
  node.machine().spec.cap_range = {};
  CHECK(facts().cap_min == 50);
  CHECK(facts().cap_max == 150);
}

TEST_CASE("capping by BMC: a budget is shared with machines that agents cap") {
  World w;
  with_limit(with_agent(w.node("bmc")), 120);
  with_agent(w.node("rapl")).utilization(80, 120);
  const planner::Proposal proposal = capping_of(w, CapMethod::Auto, 220);
  REQUIRE(proposal.actions.size() == 2);
  CHECK(std::get<SetCap>(proposal.actions[0].what).by == CapBy::BMC);
  CHECK(std::get<SetCap>(proposal.actions[1].what).by == CapBy::RAPL);
}

TEST_CASE("release: a limit that its BMC would not give back is asked for after its pause") {
  World w;
  capped_by_bmc(with_limit(w.node("n1"), 90), 120, 120);
  const auto released = [&] {
    return planner::release(w.snapshot(), "default", {}, planner::Reason::PolicyDeleted).size();
  };
  CHECK(released() == 1);
  w.node("n1").machine().status.bmc.next_attempt = kNoon + seconds{1};
  CHECK(released() == 0);
}

TEST_CASE("a BMC that may not be used says which option to set") {
  World w;
  w.node("n1").no_driver().idle_for(minutes{20});
  planner::Snapshot snapshot = w.snapshot();
  snapshot.nodes.at("n1").driver_problem = "BMC 10.0.0.7 is not allowed";
  OnePass p{std::move(snapshot), enforcing()};
  std::map<planner::NodeName, api::NodeMemory> memory;
  const planner::Proposal proposal = planner::power_off(p.pass, memory);
  CHECK(reason_of(proposal.refusals, "n1") == "NoDriver");
  CHECK(proposal.refusals.at("n1").message == "no power driver: BMC 10.0.0.7 is not allowed");
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::test
