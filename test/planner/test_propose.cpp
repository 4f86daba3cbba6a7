#include <functional>

#include <doctest/doctest.h>

#include "planner/destinations.hpp"
#include "planner/propose.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::kNoon;
using test::World;
using namespace std::chrono_literals;

TEST_CASE("numbers and lists read well") {
  CHECK(watts_text(Milliwatts{0}) == "0.0 W");
  CHECK(watts_text(Milliwatts{1049}) == "1.0 W");
  CHECK(watts_text(Milliwatts{1050}) == "1.1 W");
  CHECK(watts_text(Milliwatts{-12'345}) == "-12.3 W");
  CHECK(list_text({}) == "");
  CHECK(list_text({"a"}) == "a");
  CHECK(list_text({"a", "b"}) == "a and b");
  CHECK(list_text({"a", "b", "c"}) == "a, b and c");
  CHECK(list_text({"a", "b", "c", "d", "e"}) == "a, b, c and 2 more");
  CHECK(day_of(kNoon) == "2026-11-20");
}

TEST_CASE("the earliest wake is kept, and the past is none") {
  Proposal proposal;
  wake_after(proposal, Duration{0});
  wake_after(proposal, -5s);
  CHECK_FALSE(proposal.next_wake.has_value());
  wake_after(proposal, 9s);
  wake_after(proposal, 3s);
  wake_after(proposal, 5s);
  CHECK(proposal.next_wake == Duration{3s});
}

TEST_CASE("the override annotation") {
  using Kind = Override::Kind;
  struct Case {
    const char* text;
    Kind kind;
    bool until;
  };
  const Case cases[] = {{"", Kind::none, false},
                        {"on", Kind::on, false},
                        {"off", Kind::off, false},
                        {"on,until=2026-11-20T12:00:01Z", Kind::on, true},
                        {"off,until=2026-11-20T14:00:00+01:00", Kind::off, true},
                        {"on,until=2026-11-20T12:00:00Z", Kind::none, false},
                        {"on,until=", Kind::not_understood, false},
                        {"on,2026-11-20T12:00:01Z", Kind::not_understood, false},
                        {"ON", Kind::not_understood, false},
                        {"on ", Kind::not_understood, false}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    World w;
    w.node("n1").annotation("kwatt.dev/override", c.text);
    const Snapshot s = w.snapshot();
    const Override override = override_of(s.nodes.at("n1"), kNoon);
    CHECK(override.kind == c.kind);
    CHECK(override.until.has_value() == c.until);
  }
}

TEST_CASE("the power state of a node") {
  struct Case {
    const char* name;
    std::function<void(test::NodeBuilder&)> given;
    api::PowerState want;
  };
  const Case cases[] = {
      {"as recorded", [](auto& n) { n.off(); }, api::PowerState::Off},
      {"no NodePower, Ready", [](auto& n) { n.no_machine(); }, api::PowerState::On},
      {"no NodePower, not Ready", [](auto& n) { n.no_machine().not_ready(); },
       api::PowerState::Unknown},
      {"nothing recorded yet, Ready", [](auto& n) { n.state(api::PowerState::Unknown); },
       api::PowerState::On},
      {"nothing recorded yet, not Ready",
       [](auto& n) { n.state(api::PowerState::Unknown).not_ready(); }, api::PowerState::Unknown},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(w.node("n1"));
    CHECK(w.snapshot().nodes.at("n1").power_state() == c.want);
  }
}

}  // namespace
}  // namespace kwatt::planner
