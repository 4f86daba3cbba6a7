// Disruption budgets, the breaker and the floor of awake nodes.
#include <doctest/doctest.h>

#include "planner/guards.hpp"
#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::DisruptionBudgets;
using planner::Reason;

TEST_CASE("budgets: amounts are scaled as Karpenter scales them") {
  struct Case {
    const char* nodes;
    std::int64_t total;
    std::optional<std::int64_t> amount;
  };
  for (const Case& c : std::vector<Case>{{"3", 10, 3},
                                         {"0", 10, 0},
                                         {"10%", 10, 1},
                                         {"10%", 11, 2},
                                         {"10%", 1, 1},
                                         {"10%", 0, 0},
                                         {"100%", 7, 7},
                                         {"0%", 7, 0},
                                         {"33%", 10, 4},
                                         {"101%", 10, std::nullopt},
                                         {"", 10, std::nullopt},
                                         {"%", 10, std::nullopt},
                                         {"-1", 10, std::nullopt},
                                         {"1.5", 10, std::nullopt},
                                         {"x", 10, std::nullopt}}) {
    CAPTURE(c.nodes);
    CAPTURE(c.total);
    CHECK(planner::scaled_amount(c.nodes, c.total) == c.amount);
  }
}

api::Budget budget(const std::string& nodes, const std::string& schedule = "",
                   Duration duration = Duration{0}, std::vector<std::string> reasons = {},
                   bool allow = true) {
  return {"", nodes, schedule, duration, std::move(reasons), "", allow};
}

TEST_CASE("budgets: the least of those that are active and concerned counts") {
  struct Case {
    const char* name;
    std::vector<api::Budget> budgets;
    int in_flight;
    Reason reason;
    std::string refused;  // "" : allowed
  };
  // Ten nodes; a Friday, 12:00 UTC.
  const std::vector<Case> cases = {
      {"none: nothing is limited", {}, 5, Reason::Idle, ""},
      {"room is left", {budget("2")}, 1, Reason::Idle, ""},
      {"room is used up", {budget("2")}, 2, Reason::Idle, "BudgetExhausted"},
      {"more is in flight than allowed now", {budget("2")}, 5, Reason::Idle, "BudgetExhausted"},
      {"the least counts", {budget("50%"), budget("1")}, 1, Reason::Idle, "BudgetExhausted"},
      {"another reason is not concerned",
       {budget("0", "", Duration{0}, {"Idle"})},
       3,
       Reason::LowUtilization,
       ""},
      {"its own reason is",
       {budget("0", "", Duration{0}, {"Idle"})},
       0,
       Reason::Idle,
       "BudgetExhausted"},
      {"a window that is open now",
       {budget("0", "0 9 * * mon-fri", hours{8})},
       0,
       Reason::Idle,
       "Window"},
      {"a window that is over", {budget("0", "0 9 * * mon-fri", hours{2})}, 0, Reason::Idle, ""},
      {"a window of other days", {budget("0", "0 9 * * sat,sun", hours{8})}, 0, Reason::Idle, ""},
      {"allow: false", {budget("100%", "@daily", hours{24}, {}, false)}, 0, Reason::Idle, "Window"},
      {"what cannot be read forbids everything",
       {budget("5", "every now and then", hours{1})},
       0,
       Reason::Idle,
       "Window"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    for (int i = 0; i < 10; ++i) w.node("n" + std::to_string(i));
    for (int i = 0; i < c.in_flight; ++i) {
      w.node("n" + std::to_string(i))
          .operation(i % 2 == 0 ? api::OperationKind::PowerOff : api::OperationKind::Migrate);
    }
    // Neither of these is a disruption.
    w.node("n8").operation(api::OperationKind::SetFrequency);
    w.node("n9").off();
    const planner::Snapshot snapshot = w.snapshot();
    api::DisruptionSpec spec;
    spec.budgets = c.budgets;
    const DisruptionBudgets budgets{snapshot, spec, all_nodes(snapshot)};
    const auto verdict = budgets.refuse(c.reason);
    CHECK((verdict ? std::string(api::to_string(verdict->reason)) : "") == c.refused);
  }
}

TEST_CASE("budgets: what is added counts, and status shows it") {
  World w;
  for (int i = 0; i < 4; ++i) w.node("n" + std::to_string(i));
  const planner::Snapshot snapshot = w.snapshot();
  api::DisruptionSpec spec;
  spec.budgets = {budget("2"), budget("1", "0 9 * * *", hours{4})};
  spec.budgets[1].name = "office hours";
  DisruptionBudgets budgets{snapshot, spec, all_nodes(snapshot)};
  CHECK_FALSE(budgets.refuse(Reason::Idle).has_value());
  budgets.add();
  const auto verdict = budgets.refuse(Reason::Idle);
  REQUIRE(verdict.has_value());
  CHECK(verdict->message == "budget office hours allows 1 nodes at a time, 1 are in use");
  const auto uses = budgets.uses();
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].name == "budgets[0]");
  CHECK(uses[0].allowed == 2);
  CHECK(uses[1].used == 1);
  CHECK(uses[1].active_until == kNoon + hours{1});
  CHECK(budgets.next_change() == kNoon + hours{1});
}

TEST_CASE("floor: awake nodes are counted in all and per zone") {
  World w;
  w.node("a1").zone("a");
  w.node("a2").zone("a");
  w.node("b1").zone("b");
  w.node("b2").zone("b").operation(api::OperationKind::PowerOff, "Evict");
  w.node("c1").zone("c").off();
  w.node("d1").zone("d").not_ready();
  api::PowerOffSpec spec;
  spec.min_awake = 2;
  const planner::Snapshot snapshot = w.snapshot();
  planner::AwakeFloor floor{snapshot, spec, all_nodes(snapshot)};
  CHECK_FALSE(floor.refuse(snapshot.nodes.at("a1")).has_value());
  CHECK(floor.refuse(snapshot.nodes.at("b1"))->reason == Reason::MinAwake);  // the zone's last
  CHECK_FALSE(floor.refuse(snapshot.nodes.at("c1")).has_value());            // not awake anyway
  floor.remove(snapshot.nodes.at("a1"));
  CHECK(floor.refuse(snapshot.nodes.at("a2"))->message.find("minAwake is 2") != std::string::npos);
}

}  // namespace
}  // namespace kwatt::test
