// Which events are written: aggregation and rate limits, with the clock as a number.
#include <set>

#include <doctest/doctest.h>

#include "kube/event_correlator.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;
using Kind = EventCorrelator::Decision::Kind;

namespace {

struct Events {
  EventNote note(const std::string& text, const std::string& object = "node-1") const {
    EventNote made;
    made.regarding = {"v1", "Node", "", object, "uid-" + object};
    made.reason = "Idle";
    made.action = "PowerOff";
    made.note = text;
    return made;
  }
  EventCorrelator::Decision tell(const EventNote& what) {
    return correlator.decide(what, wall + std::chrono::floor<Duration>(now - MonotonicPoint{}),
                             now);
  }
  TimePoint wall = *parse_rfc3339("2026-11-20T12:00:00Z");
  MonotonicPoint now{1h};
  EventCorrelator correlator{EventLimits{}};
};

}  // namespace

TEST_CASE_FIXTURE(Events, "events: the first is created, the same again is counted up") {
  const auto first = tell(note("powered off"));
  CHECK(first.kind == Kind::create);
  CHECK(first.note == "powered off");
  CHECK(first.name.starts_with("node-1."));
  for (std::int64_t count = 2; count < 6; ++count) {
    const auto again = tell(note("powered off"));
    CHECK(again.kind == Kind::repeat);
    CHECK(again.name == first.name);
    CHECK(again.count == count);
  }
}

TEST_CASE_FIXTURE(Events, "events: another reason, type or object is another event") {
  std::set<std::string> names;
  EventNote base = note("x");
  names.insert(tell(base).name);
  EventNote other = base;
  other.reason = "Manual";
  names.insert(tell(other).name);
  other = base;
  other.warning = true;
  names.insert(tell(other).name);
  names.insert(tell(note("x", "node-2")).name);
  names.insert(tell(note("y")).name);
  CHECK(names.size() == 5);
}

TEST_CASE_FIXTURE(Events, "events: after ten minutes a series is over") {
  const auto first = tell(note("x"));
  now += 601s;
  const auto second = tell(note("x"));
  CHECK(second.kind == Kind::create);
  CHECK(second.count == 1);
  CHECK(second.name != first.name);
}

TEST_CASE_FIXTURE(Events, "events: more than ten similar ones become one") {
  for (int i = 0; i < 10; ++i) CHECK(tell(note("watts " + std::to_string(i))).kind == Kind::create);
  const auto combined = tell(note("watts 10"));
  CHECK(combined.kind == Kind::create);
  CHECK(combined.note == "(combined from similar events): watts 10");
  const auto more = tell(note("watts 11"));
  CHECK(more.kind == Kind::repeat);
  CHECK(more.name == combined.name);
  CHECK(more.count == 2);
  now += 601s;
  CHECK(tell(note("watts 12")).note == "watts 12");
}

TEST_CASE_FIXTURE(Events, "events: 25 in a burst about one object, then one in five minutes") {
  int written = 0;
  for (int i = 0; i < 100; ++i) written += tell(note("x")).kind == Kind::drop ? 0 : 1;
  CHECK(written == 25);
  CHECK(tell(note("x", "node-2")).kind == Kind::create);
  now += 299s;
  CHECK(tell(note("x")).kind == Kind::drop);
  now += 1s;
  const auto next = tell(note("x"));
  CHECK(next.kind == Kind::repeat);
  CHECK(next.count == 102);  // what was dropped is counted all the same
}

TEST_CASE_FIXTURE(Events, "events: one that could not be written is created anew") {
  const auto first = tell(note("x"));
  correlator.forget(first.name);
  const auto again = tell(note("x"));
  CHECK(again.kind == Kind::create);
  CHECK(again.name != first.name);
}

TEST_CASE_FIXTURE(Events, "events: a series whose first ones were dropped starts with a create") {
  for (int i = 0; i < 30; ++i) tell(note("spam"));
  CHECK(tell(note("other")).kind == Kind::drop);
  now += 300s;
  const auto later = tell(note("other"));
  CHECK(later.kind == Kind::create);
  CHECK(later.count == 1);
}

TEST_CASE_FIXTURE(Events, "events: what is remembered stays bounded") {
  EventCorrelator small{EventLimits{.memory = 64}};
  for (int i = 0; i < 1000; ++i) {
    now += 1ms;
    CHECK(small.decide(note("x", "node-" + std::to_string(i)), wall, now).kind == Kind::create);
  }
  CHECK(small.decide(note("x", "node-999"), wall, now).kind == Kind::repeat);
  CHECK(small.decide(note("x", "node-0"), wall, now).kind == Kind::create);
}

TEST_CASE_FIXTURE(Events, "events: names stay legal, whatever the object is called") {
  const std::string longest = std::string(199, 'a') + "." + std::string(53, 'b');
  const auto name = tell(note("x", longest)).name;
  CHECK(name.size() <= 253);
  CHECK(name.find("..") == std::string::npos);
  CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos);
}

TEST_CASE("events: a note is cut to 1,024 bytes, never inside a character") {
  CHECK(cut_note("short") == "short");
  CHECK(cut_note(std::string(1024, 'x')).size() == 1024);
  CHECK(cut_note(std::string(1025, 'x')) == std::string(1021, 'x') + "...");
  std::string umlauts;
  for (int i = 0; i < 600; ++i) umlauts += "ü";
  const std::string cut = cut_note(umlauts);
  CHECK(cut.size() <= 1024);
  CHECK(cut.substr(cut.size() - 5) == "ü...");
}
