// The list-and-watch protocol, step by step: what happened → what is done next. No socket, no
// clock.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kube/watch_fsm.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;
using Do = WatchAction::Kind;
using On = WatchEvent::Kind;

namespace {

// A machine with a clock that only moves when told, and no jitter.
struct Run {
  explicit Run(WatchOptions options = {}) : fsm(options, [] { return 0.0; }) {
    action = fsm.next({.kind = On::start, .now = now});
  }

  Run& on(On kind, std::string version = {}, std::string token = {}) {
    action =
        fsm.next({.kind = kind, .now = now, .resource_version = version, .continue_token = token});
    return *this;
  }
  Run& fail(WatchFailure failure, std::optional<Duration> retry_after = std::nullopt) {
    action =
        fsm.next({.kind = On::failed, .now = now, .failure = failure, .retry_after = retry_after});
    return *this;
  }
  Run& after(Duration time) {
    now += time;
    return *this;
  }
  // Listed at version "10" and watching.
  Run& watching() { return on(On::page, "10").on(On::committed).on(On::opened); }

  MonotonicPoint now{1h};
  WatchFsm fsm;
  WatchAction action;
};

}  // namespace

TEST_CASE("list: the first list asks the watch cache for anything, in pages") {
  Run run;
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.resource_version == "0");
  CHECK(run.action.limit == 500);
  CHECK(run.action.first_page);
  CHECK(run.action.continue_token.empty());
}

TEST_CASE("list: pages follow the continue token, without a resource version") {
  Run run;
  run.on(On::page, "10", "more");
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.continue_token == "more");
  CHECK(run.action.resource_version.empty());
  CHECK(run.action.limit == 500);
  CHECK_FALSE(run.action.first_page);
  run.on(On::page, "10");
  CHECK(run.action.kind == Do::commit);
  run.on(On::committed);
  CHECK(run.action.kind == Do::watch);
  CHECK(run.action.resource_version == "10");
}

TEST_CASE("list: the watch starts at the version of the first page") {
  Run run;
  run.on(On::page, "10", "more").on(On::page, "12").on(On::committed);
  CHECK(run.action.resource_version == "10");
}

TEST_CASE("list: without a resource version it is an error, and nothing is put in place") {
  Run run;
  run.on(On::page, "");
  CHECK(run.action.kind == Do::sleep);
  run.after(1s).on(On::slept);
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.first_page);
}

TEST_CASE("list: later lists are not older than what was seen, and are not paged") {
  Run run;
  run.watching().fail(WatchFailure::other);
  REQUIRE(run.action.kind == Do::sleep);
  run.after(1s).on(On::slept);
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.resource_version == "10");
  CHECK(run.action.limit == 0);
}

TEST_CASE("list: a version that is gone or not there yet is repeated at once, as a quorum read") {
  for (const auto failure : {WatchFailure::expired, WatchFailure::too_large}) {
    CAPTURE(to_string(failure));
    Run run;
    run.fail(failure);
    CHECK(run.action.kind == Do::list);
    CHECK(run.action.resource_version.empty());
    CHECK(run.action.limit == 500);
    SUBCASE("but only once: then there is a pause") {
      run.fail(failure);
      CHECK(run.action.kind == Do::sleep);
      run.after(1s).on(On::slept);
      CHECK(run.action.kind == Do::list);
      CHECK(run.action.resource_version.empty());
    }
    SUBCASE("after success lists name a version again") {
      run.watching().fail(WatchFailure::other);
      run.after(1s).on(On::slept);
      CHECK(run.action.resource_version == "10");
    }
  }
}

TEST_CASE("list: an expired continue token starts over from page one, in one piece") {
  Run run;
  run.on(On::page, "10", "more").fail(WatchFailure::expired);
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.first_page);
  CHECK(run.action.resource_version.empty());
  CHECK(run.action.continue_token.empty());
  CHECK(run.action.limit == 0);
}

TEST_CASE("list: other failures pause and start over") {
  for (const auto failure : {WatchFailure::throttled, WatchFailure::unavailable,
                             WatchFailure::internal, WatchFailure::other}) {
    CAPTURE(to_string(failure));
    Run run;
    run.on(On::page, "10", "more").fail(failure);
    CHECK(run.action.kind == Do::sleep);
    CHECK(run.action.pause == 800ms);
    run.after(1s).on(On::slept);
    CHECK(run.action.kind == Do::list);
    CHECK(run.action.first_page);
    CHECK(run.action.resource_version == "0");
  }
}

TEST_CASE("watch: asks the server to end it after a random time between the bounds") {
  for (const auto& [random, want] : std::vector<std::pair<double, std::chrono::seconds>>{
           {0.0, 300s}, {0.5, 450s}, {0.999999, 599s}}) {
    WatchFsm fsm({}, [value = random] { return value; });
    fsm.next({.kind = On::start});
    fsm.next({.kind = On::page, .resource_version = "1"});
    const auto action = fsm.next({.kind = On::committed});
    CHECK(action.kind == Do::watch);
    CHECK(action.timeout == want);
  }
}

TEST_CASE("watch: changes are applied, and every event moves the version on") {
  Run run;
  run.watching();
  CHECK(run.action.kind == Do::read);
  run.on(On::change, "11");
  CHECK(run.action.kind == Do::apply);
  run.on(On::applied);
  CHECK(run.action.kind == Do::read);
  run.on(On::bookmark, "15");
  CHECK(run.action.kind == Do::read);
  run.on(On::ended);
  CHECK(run.action.kind == Do::watch);
  CHECK(run.action.resource_version == "15");
}

TEST_CASE("watch: an event without a version makes it list again, not older than before") {
  for (const auto kind : {On::change, On::bookmark}) {
    Run run;
    run.watching().on(On::change, "11").on(On::applied).on(kind, "");
    CHECK(run.action.kind == Do::sleep);
    run.after(1s).on(On::slept);
    CHECK(run.action.kind == Do::list);
    CHECK(run.action.resource_version == "11");
  }
}

TEST_CASE("watch: an unknown event type is skipped and does not move the version") {
  Run run;
  run.watching().on(On::skipped);
  CHECK(run.action.kind == Do::read);
  CHECK(run.fsm.resource_version() == "10");
}

TEST_CASE("watch: a clean end goes on from the last version without a list or a pause") {
  Run run;
  run.watching().after(5min).on(On::ended);
  CHECK(run.action.kind == Do::watch);
  CHECK(run.action.resource_version == "10");
}

TEST_CASE("watch: a very short and empty watch is a failure, but not a reason to list") {
  Run run;
  run.watching().after(999ms).on(On::ended);
  CHECK(run.action.kind == Do::sleep);
  run.after(1s).on(On::slept);
  CHECK(run.action.kind == Do::watch);
  CHECK(run.action.resource_version == "10");
}

TEST_CASE("watch: a short watch that brought something is none") {
  Run run;
  run.watching().on(On::bookmark, "11").after(1ms).on(On::ended);
  CHECK(run.action.kind == Do::watch);
  CHECK(run.action.resource_version == "11");
}

TEST_CASE("watch: 410 at connect relists from scratch") {
  Run run;
  run.on(On::page, "10").on(On::committed).fail(WatchFailure::expired);
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.first_page);
  CHECK(run.action.resource_version.empty());
}

TEST_CASE("watch: 410 inside the stream relists from scratch") {
  Run run;
  run.watching().on(On::change, "11").on(On::applied).fail(WatchFailure::expired);
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.first_page);
  CHECK(run.action.resource_version.empty());
}

TEST_CASE("watch: a server that calls its own fresh list expired is not asked in a tight loop") {
  Run run;
  run.watching().fail(WatchFailure::expired);
  CHECK(run.action.kind == Do::list);
  run.watching().fail(WatchFailure::expired);
  CHECK(run.action.kind == Do::sleep);
  run.after(1s).on(On::slept);
  CHECK(run.action.kind == Do::list);
  SUBCASE("until a watch brought something") {
    run.watching().on(On::bookmark, "12").fail(WatchFailure::expired);
    CHECK(run.action.kind == Do::list);
  }
}

TEST_CASE("watch: 429, a refused or lost connection pause and go on at the same version") {
  for (const auto failure : {WatchFailure::throttled, WatchFailure::unavailable}) {
    CAPTURE(to_string(failure));
    for (const bool connected : {false, true}) {
      Run run;
      run.on(On::page, "10").on(On::committed);
      if (connected) run.on(On::opened);
      run.fail(failure);
      CHECK(run.action.kind == Do::sleep);
      run.after(1s).on(On::slept);
      CHECK(run.action.kind == Do::watch);
      CHECK(run.action.resource_version == "10");
    }
  }
}

TEST_CASE("watch: Retry-After is respected when it is longer than our own pause") {
  Run run;
  run.watching().fail(WatchFailure::throttled, 7s);
  CHECK(run.action.pause == 7s);
  run.after(7s).on(On::slept).on(On::opened).fail(WatchFailure::throttled, 1ms);
  CHECK(run.action.pause == 1600ms);
}

TEST_CASE("watch: internal errors are retried for a minute, then listed") {
  Run run;
  run.watching();
  const MonotonicPoint began = run.now;
  int watches = 0;
  for (;;) {
    run.fail(WatchFailure::internal);
    REQUIRE(run.action.kind == Do::sleep);
    run.after(run.action.pause).on(On::slept);
    if (run.action.kind != Do::watch) break;
    ++watches;
    run.on(On::opened);
  }
  CHECK(run.action.kind == Do::list);
  CHECK(run.action.resource_version == "10");
  CHECK(watches >= 5);
  CHECK(run.now - began > 1min);
  CHECK(run.now - began < 3min);
}

TEST_CASE("watch: an event ends the minute of internal errors") {
  Run run;
  run.watching().fail(WatchFailure::internal).after(59s).on(On::slept).on(On::opened);
  run.on(On::change, "11").on(On::applied).after(30s).fail(WatchFailure::internal);
  run.after(30s).on(On::slept);
  CHECK(run.action.kind == Do::watch);
}

TEST_CASE("watch: anything else lists again after a pause") {
  Run run;
  run.watching().fail(WatchFailure::other);
  CHECK(run.action.kind == Do::sleep);
  run.after(1s).on(On::slept);
  CHECK(run.action.kind == Do::list);
}

TEST_CASE("backoff: doubles from 800 ms to 30 s, jitter adds up to the same again") {
  for (const auto& [random, factor] : std::vector<std::pair<double, int>>{{0.0, 1}, {1.0, 2}}) {
    WatchFsm fsm({}, [value = random] { return value; });
    MonotonicPoint now{1h};
    fsm.next({.kind = On::start, .now = now});
    std::vector<std::int64_t> pauses;
    for (int i = 0; i < 8; ++i) {
      const auto action = fsm.next({.kind = On::failed, .now = now});
      pauses.push_back(action.pause.count() / factor);
      now += action.pause;
      fsm.next({.kind = On::slept, .now = now});
    }
    CHECK(pauses == std::vector<std::int64_t>{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000});
  }
}

TEST_CASE("backoff: two minutes without a failure start anew") {
  Run run;
  run.fail(WatchFailure::other).after(1s).on(On::slept).fail(WatchFailure::other);
  CHECK(run.action.pause == 1600ms);
  run.after(2s).on(On::slept).watching().after(120s).fail(WatchFailure::other);
  CHECK(run.action.pause == 800ms);
}
