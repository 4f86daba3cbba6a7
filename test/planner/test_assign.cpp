// Which policy has each node, and what a policy must give back.
#include <doctest/doctest.h>

#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::Reason;
using Names = std::vector<std::string>;

std::shared_ptr<api::EnergyPolicy> policy(const std::string& name, std::int64_t priority,
                                          Duration age) {
  auto p = std::make_shared<api::EnergyPolicy>();
  p->meta.name = name;
  p->meta.creation_timestamp = kNoon - age;
  p->spec.priority = priority;
  return p;
}

TEST_CASE("assign: highest priority, then the oldest, then by name") {
  struct Case {
    const char* name;
    std::shared_ptr<api::EnergyPolicy> a, b;
    const char* winner;
  };
  const std::vector<Case> cases = {
      {"priority beats age", policy("a", 0, hours{9}), policy("b", 1, hours{1}), "b"},
      {"negative priority loses", policy("a", -1, hours{9}), policy("b", 0, hours{1}), "b"},
      {"age beats name", policy("a", 0, hours{1}), policy("b", 0, hours{9}), "b"},
      {"name decides the rest", policy("a", 0, hours{1}), policy("b", 0, hours{1}), "a"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n1");
    w.node("n2");
    for (const bool swapped : {false, true}) {
      const auto result = planner::assign(
          w.snapshot(), swapped ? std::vector<std::shared_ptr<const api::EnergyPolicy>>{c.b, c.a}
                                : std::vector<std::shared_ptr<const api::EnergyPolicy>>{c.a, c.b});
      const std::string loser = std::string(c.winner) == "a" ? "b" : "a";
      CHECK(result.selected.at(c.winner) == Names{"n1", "n2"});
      CHECK(result.selected.at(loser).empty());
      REQUIRE(result.lost.at(loser).size() == 2);
      CHECK(result.lost.at(loser)[0].node == "n1");
      CHECK(result.lost.at(loser)[0].winner == c.winner);
      CHECK(result.lost.count(c.winner) == 0);
    }
  }
}

TEST_CASE("assign: selectors divide the nodes; a policy going or invalid takes part in nothing") {
  World w;
  w.node("n1").label("pool", "a");
  w.node("n2").label("pool", "b").annotation("kwatt.dev/exclude", "true");
  w.node("n3");
  auto a = policy("a", 5, hours{1}), all = policy("all", 0, hours{2});
  a->spec.node_selector.match_labels.set("pool", "a");
  auto going = policy("going", 100, hours{9});
  going->meta.deletion_timestamp = kNoon;
  auto invalid = policy("invalid", 100, hours{9});
  invalid->spec.dvfs.low_utilization_percent = 90;
  const auto result = planner::assign(w.snapshot(), {a, all, going, invalid});
  CHECK(result.selected.at("a") == Names{"n1"});
  CHECK(result.selected.at("all") == Names{"n2", "n3"});  // excluded nodes stay selected
  CHECK(result.selected.count("going") == 0);
  CHECK(result.selected.count("invalid") == 0);
  REQUIRE(result.lost.at("all").size() == 1);
  CHECK(result.lost.at("all")[0].node == "n1");
}

TEST_CASE("release: what the policy holds and may not, by memory or by its request") {
  World w;
  w.node("kept").machine().status.memory.owner_policy = "default";
  w.node("mine").machine().status.memory.owner_policy = "default";
  slowed(with_agent(w.node("noted"))).machine().status.memory.owner_policy.clear();
  w.node("other").machine().status.memory.owner_policy = "another";
  w.node("free");
  w.node("busy").operation(api::OperationKind::PowerOff, "Evict");
  w.node("busy").machine().status.memory.owner_policy = "default";
  w.node("resting").off().quarantined(minutes{5});
  w.node("sleeping").off();
  w.node("by-hand").annotation("kwatt.dev/governor", "powersave");
  const auto actions = planner::release(w.snapshot(), "default", {"kept"}, Reason::NotSelected);
  CHECK(nodes_of<planner::Release>(actions) == Names{"mine", "noted", "sleeping"});
  CHECK(actions[0].reason == Reason::NotSelected);
  CHECK(actions[0].pre.node_uid == "uid-mine");

  SUBCASE("not from a cache that may miss something") {
    planner::Snapshot snapshot = w.snapshot();
    snapshot.sync.synced = false;
    CHECK(planner::release(snapshot, "default", {}, Reason::PolicyDeleted).empty());
  }
  SUBCASE("nothing is kept when the policy goes") {
    const auto all = planner::release(w.snapshot(), "default", {}, Reason::PolicyDeleted);
    CHECK(nodes_of<planner::Release>(all) == Names{"kept", "mine", "noted", "sleeping"});
  }
}

}  // namespace
}  // namespace kwatt::test
