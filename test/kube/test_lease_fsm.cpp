// Leader election as a table of what the API server does and what the candidate does next.
#include <vector>

#include <doctest/doctest.h>

#include "kube/lease_fsm.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;
using On = LeaseEvent::Kind;
using Do = LeaseAction::Kind;

namespace {

LeaseOptions options() {
  return {.identity = "me"};
}

LeaseRecord record(const std::string& holder, const std::string& version,
                   std::int64_t transitions = 3) {
  return {.resource_version = version,
          .holder = holder,
          .duration_seconds = 15,
          .transitions = transitions,
          .acquire_time = "2026-01-01T00:00:00.000000Z",
          .renew_time = "renewed " + version};
}

struct Election {
  Election() { on(On::start); }
  LeaseAction& on(On kind, LeaseRecord about = {}) {
    action = fsm.next({.kind = kind,
                       .now = now,
                       .wall = wall + std::chrono::floor<Duration>(now - MonotonicPoint{1h}),
                       .sent = sent,
                       .record = std::move(about)});
    return action;
  }
  // Lets a request take `time` to be answered.
  LeaseAction& answered(On kind, Duration time, LeaseRecord about = {}) {
    sent = now;
    now += time;
    return on(kind, std::move(about));
  }
  // The write that was just asked for succeeds as version `version`.
  LeaseAction& succeed(const std::string& version, Duration time = 10ms) {
    LeaseRecord written = action.record;
    written.resource_version = version;
    return answered(On::written, time, written);
  }
  void lead() {
    on(On::record, record("", "5"));
    succeed("6");
    REQUIRE(fsm.holding());
  }
  Duration until() const { return std::chrono::ceil<Duration>(action.until - now); }

  MonotonicPoint now{1h}, sent{};
  TimePoint wall = *parse_rfc3339("2026-11-20T12:00:00Z");
  LeaseFsm fsm{options(), [] { return 0.5; }};
  LeaseAction action;
};

}  // namespace

TEST_CASE("options: lease > renew deadline > retry × jitter, and an identity") {
  const auto ok = [](Duration lease, Duration renew, Duration retry, const char* identity = "me") {
    return check({.identity = identity,
                  .lease_duration = lease,
                  .renew_deadline = renew,
                  .retry_period = retry})
        .has_value();
  };
  CHECK(ok(15s, 10s, 2s));
  CHECK(ok(3s, 2s, 500ms));
  CHECK_FALSE(ok(10s, 10s, 2s));
  CHECK_FALSE(ok(15s, 2400ms, 2s));
  CHECK_FALSE(ok(15s, 10s, 0s));
  CHECK_FALSE(ok(15s, 10s, 2s, ""));
}

TEST_CASE_FIXTURE(Election, "acquire: no Lease is created with us as its first holder") {
  CHECK(action.kind == Do::get);
  on(On::absent);
  CHECK(action.kind == Do::create);
  CHECK(action.record.holder == "me");
  CHECK(action.record.transitions == 0);
  CHECK(action.record.duration_seconds == 15);
  CHECK(action.record.acquire_time == "2026-11-20T12:00:00.000000Z");
  CHECK(action.record.renew_time == action.record.acquire_time);
  succeed("1");
  CHECK(fsm.holding());
}

TEST_CASE_FIXTURE(Election, "acquire: somebody else creates it first") {
  on(On::absent);
  on(On::conflict);
  CHECK(action.kind == Do::get);
  on(On::record, record("other", "1"));
  CHECK(action.kind == Do::wait);
  CHECK_FALSE(fsm.holding());
}

TEST_CASE_FIXTURE(Election, "acquire: a released Lease is taken at once, transitions count up") {
  on(On::record, record("", "5", 3));
  CHECK(action.kind == Do::update);
  CHECK(action.record.resource_version == "5");
  CHECK(action.record.transitions == 4);
  CHECK(action.record.holder == "me");
}

TEST_CASE_FIXTURE(Election,
                  "acquire: another's Lease counts from when we saw it change, whatever it says") {
  // Its renew time lies years in the past; that proves nothing about the holder's clock.
  on(On::record, record("other", "5"));
  CHECK(action.kind == Do::wait);
  now += 14s;
  on(On::timer);
  CHECK(action.kind == Do::get);
  on(On::record, record("other", "5"));  // unchanged
  CHECK(action.kind == Do::wait);
  CHECK(until() == 1s);
  now += 1s;
  on(On::timer);
  CHECK(action.kind == Do::update);
  CHECK(action.record.resource_version == "5");
}

TEST_CASE_FIXTURE(Election, "acquire: every renewal of the holder starts the wait anew") {
  on(On::record, record("other", "5"));
  for (int i = 6; i < 16; ++i) {
    now += 10s;
    on(On::seen, record("other", std::to_string(i)));
    CHECK(action.kind == Do::wait);
  }
  now += 14999ms;
  on(On::timer);
  CHECK(action.kind == Do::get);
}

TEST_CASE_FIXTURE(Election,
                  "acquire: the attempt comes at the very instant of expiry, without jitter") {
  on(On::record, record("other", "5"));
  now += 12s;
  on(On::timer);
  on(On::record, record("other", "5"));
  // The next poll would come after 2 s × (1 + 1.2 × 0.5) = 3.2 s; expiry is in 3 s.
  CHECK(until() == 3s);
}

TEST_CASE_FIXTURE(Election, "acquire: polls in between come with jitter") {
  on(On::record, record("other", "5"));
  CHECK(until() == 3200ms);
}

TEST_CASE_FIXTURE(Election, "acquire: the holder's own lease duration counts") {
  LeaseRecord slow = record("other", "5");
  slow.duration_seconds = 60;
  on(On::record, slow);
  now += 59s;
  on(On::timer);
  CHECK(action.kind == Do::get);
  now += 1s;
  on(On::timer);
  CHECK(action.kind == Do::update);
}

TEST_CASE_FIXTURE(Election, "acquire: two try at the expiry, the loser reads and waits") {
  on(On::record, record("other", "5"));
  now += 15s;
  on(On::timer);
  REQUIRE(action.kind == Do::update);
  on(On::conflict);
  CHECK(action.kind == Do::get);
  on(On::record, record("third", "6"));
  CHECK(action.kind == Do::wait);
  now += 14s;
  on(On::timer);
  CHECK(action.kind == Do::get);
}

TEST_CASE_FIXTURE(Election, "acquire: without an answer it tries again after a while") {
  on(On::failed);
  CHECK(action.kind == Do::wait);
  CHECK(until() == 3200ms);
  now += 3200ms;
  on(On::timer);
  CHECK(action.kind == Do::get);
}

TEST_CASE_FIXTURE(Election, "acquire: an answer so late that the deadline has passed is no start") {
  on(On::record, record("", "5"));
  succeed("6", 10s);
  CHECK_FALSE(fsm.holding());
  CHECK(action.kind == Do::get);
}

TEST_CASE_FIXTURE(Election,
                  "lead: renews every retry period with the cached version, first PUT, no GET") {
  lead();
  CHECK(action.kind == Do::wait);
  CHECK(until() == 1990ms);
  now += 1990ms;
  on(On::timer);
  CHECK(action.kind == Do::update);
  CHECK(action.record.resource_version == "6");
  CHECK(action.record.transitions == 4);
  CHECK(action.record.acquire_time == "2026-11-20T12:00:00.000000Z");
  CHECK(action.record.renew_time == "2026-11-20T12:00:02.000000Z");
  succeed("7");
  now += 1990ms;
  on(On::timer);
  CHECK(action.record.resource_version == "7");
}

TEST_CASE_FIXTURE(Election, "lead: the lease counts from when the renewal was sent, not answered") {
  lead();
  const MonotonicPoint began = now;
  on(On::timer);
  succeed("7", 3s);
  CHECK(fsm.expires() == began + 15s);
  CHECK(fsm.renew_deadline() == began + 10s);
}

TEST_CASE_FIXTURE(Election,
                  "lead: a conflict is looked at, and written over if the Lease is still ours") {
  lead();
  now += 2s;
  on(On::timer);
  on(On::conflict);
  CHECK(action.kind == Do::get);
  on(On::record, record("me", "9", 4));  // somebody put a label on it
  CHECK(action.kind == Do::update);
  CHECK(action.record.resource_version == "9");
  CHECK(action.record.transitions == 4);
  CHECK(fsm.holding());
}

TEST_CASE_FIXTURE(Election, "lead: the server says somebody else holds it: lost at once") {
  lead();
  now += 2s;
  on(On::timer);
  on(On::conflict);
  on(On::record, record("other", "9"));
  CHECK(action.kind == Do::stop);
  CHECK(fsm.lost());
  CHECK_FALSE(fsm.holding());
}

TEST_CASE_FIXTURE(Election, "lead: what the watch shows may be old, so the server is asked") {
  lead();
  on(On::seen, record("other", "4"));
  CHECK(action.kind == Do::get);
  CHECK(fsm.holding());
  on(On::record, record("me", "6", 4));
  CHECK(action.kind == Do::update);
  CHECK(fsm.holding());
}

TEST_CASE_FIXTURE(Election, "lead: our own writes seen on the watch do not disturb the rhythm") {
  lead();
  const MonotonicPoint next = action.until;
  now += 100ms;
  on(On::seen, record("me", "6", 4));
  CHECK(action.kind == Do::wait);
  CHECK(action.until == next);
}

TEST_CASE_FIXTURE(Election,
                  "lead: failures are repeated until the renew deadline, then it is lost") {
  lead();
  const MonotonicPoint renewed = sent;
  int attempts = 0;
  while (!fsm.lost()) {
    REQUIRE(attempts < 20);
    REQUIRE(action.until <= renewed + 10s);
    if (action.kind == Do::wait) {
      now = action.until;
      on(On::timer);
    } else {
      ++attempts;
      now += 100ms;
      on(On::failed);
    }
  }
  CHECK(now == renewed + 10s);
  CHECK(attempts >= 4);
  CHECK(action.kind == Do::stop);
}

TEST_CASE_FIXTURE(Election,
                  "lead: a renewal that hangs leaves time for more, with the shortest lease too") {
  lead();
  now = action.until;
  on(On::timer);
  REQUIRE(action.kind == Do::update);
  CHECK(until() == 5s);
  now = action.until;
  on(On::failed);
  REQUIRE(action.kind == Do::wait);
  now = action.until;
  on(On::timer);
  CHECK(action.kind == Do::update);
  CHECK(until() > 1s);
}

TEST_CASE_FIXTURE(Election, "lead: a renewal that is answered after the deadline is too late") {
  lead();
  now += 2s;
  on(On::timer);
  succeed("7", 10s);
  CHECK(fsm.lost());
}

TEST_CASE_FIXTURE(Election, "lead: a Lease that was deleted is created again") {
  lead();
  now += 2s;
  on(On::timer);
  on(On::absent);
  CHECK(action.kind == Do::create);
  CHECK(action.record.holder == "me");
  on(On::conflict);
  CHECK(action.kind == Do::get);
}

TEST_CASE_FIXTURE(Election,
                  "release: an orderly stop empties the holder and shortens the duration") {
  lead();
  on(On::release);
  CHECK(action.kind == Do::update);
  CHECK(action.record.holder.empty());
  CHECK(action.record.duration_seconds == 1);
  CHECK(action.record.transitions == 4);
  CHECK(action.record.resource_version == "6");
  CHECK_FALSE(fsm.holding());
  succeed("7");
  CHECK(action.kind == Do::stop);
  CHECK_FALSE(fsm.lost());
}

TEST_CASE_FIXTURE(Election,
                  "release: a conflict is repeated if it is still ours, else left alone") {
  lead();
  on(On::release);
  on(On::conflict);
  CHECK(action.kind == Do::get);
  SUBCASE("ours") {
    on(On::record, record("me", "9", 4));
    CHECK(action.kind == Do::update);
    CHECK(action.record.holder.empty());
    CHECK(action.record.resource_version == "9");
    CHECK_FALSE(fsm.holding());
  }
  SUBCASE("another's") {
    on(On::record, record("other", "9"));
    CHECK(action.kind == Do::stop);
  }
}

TEST_CASE_FIXTURE(Election, "release: without an answer the lease simply runs out") {
  lead();
  on(On::release);
  on(On::failed);
  CHECK(action.kind == Do::stop);
}

TEST_CASE_FIXTURE(Election, "release: a follower just stops") {
  on(On::record, record("other", "5"));
  on(On::release);
  CHECK(action.kind == Do::stop);
  CHECK_FALSE(fsm.lost());
  on(On::timer);
  CHECK(action.kind == Do::stop);
}

TEST_CASE("two candidates with every interleaving of clocks never hold the lease together") {
  // Each has its own clock offset and speed error; a crash of the leader is survived by the other.
  for (const int drift_permille : {-50, 0, 50}) {
    CAPTURE(drift_permille);
    LeaseRecord server;  // the API server's copy
    int version = 0;
    std::optional<MonotonicPoint> crashed;
    struct Candidate {
      std::string name;
      double speed;
      LeaseFsm fsm;
      LeaseAction action;
      std::optional<LeaseEvent> pending;
    };
    const auto make = [](const std::string& name, double speed) {
      LeaseOptions given;
      given.identity = name;
      return Candidate{name, speed, LeaseFsm(given, [] { return 0.3; }), {}, {}};
    };
    std::vector<Candidate> all;
    all.push_back(make("a", 1.0 + drift_permille / 1000.0));
    all.push_back(make("b", 1.0));
    const auto local = [](const Candidate& c, Duration t) {
      return MonotonicPoint{1h} +
             Duration{static_cast<std::int64_t>(static_cast<double>(t.count()) * c.speed)};
    };
    for (auto& c : all) c.action = c.fsm.next({.kind = On::start, .now = local(c, 0ms)});
    std::string leader_after;
    for (Duration t{0}; t < 120s; t += 50ms) {
      int holders = 0;
      for (auto& c : all) {
        if (c.name == "a" && t > 40s) continue;  // crashed
        const MonotonicPoint now = local(c, t);
        if (c.action.kind == Do::wait) {
          if (now >= c.action.until) c.action = c.fsm.next({.kind = On::timer, .now = now});
        } else if (c.action.kind != Do::stop) {
          LeaseEvent event{.now = now, .sent = now};
          if (c.action.kind == Do::get) {
            event.kind = version == 0 ? On::absent : On::record;
          } else if (c.action.record.resource_version !=
                     (version == 0 ? "" : std::to_string(version))) {
            event.kind = On::conflict;
          } else {
            event.kind = On::written;
            server = c.action.record;
            server.renew_time = std::to_string(version);
            server.resource_version = std::to_string(++version);
          }
          event.record = server;
          c.action = c.fsm.next(event);
        }
        if (c.fsm.holding() && now < c.fsm.expires()) {
          ++holders;
          leader_after = c.name;
        }
      }
      REQUIRE(holders <= 1);
    }
    CHECK(leader_after == "b");
    CHECK(server.transitions == 1);
  }
}
