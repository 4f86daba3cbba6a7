// List and watch over real sockets: every way in which a server can disturb them.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "kube/indexes.hpp"
#include "kube/informer.hpp"
#include "test/kube/api_fixture.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;
using test::bookmark_json;
using test::End;
using test::frame_json;
using test::pod_json;

namespace {

// Pauses of 5 ms, so that a test takes no time; everything else as in earnest.
ReflectorOptions quick() {
  ReflectorOptions options;
  options.watch.backoff.initial = 5ms;
  options.watch.backoff.maximum = 10ms;
  options.watch.backoff.jitter = 0;
  options.watch.very_short = 1ms;
  return options;
}

struct Watching : test::ApiFixture {
  Watching() { connect(); }
  ~Watching() {
    if (!informer) return;
    stop.emit(boost::asio::cancellation_type::terminal);
    run_until([this] { return ended; });
  }

  void start(ReflectorOptions options = quick(), WatchTarget target = {}) {
    target.resource = resources::pods();
    informer.emplace(
        *client, target,
        [this](std::string_view json) -> Result<api::Pod> {
          api::Pod pod;
          if (auto done = api::decode(json, pod, &interner); !done) return done.error();
          return pod;
        },
        clock, metrics, pod_indexes(), options);
    boost::asio::co_spawn(io, informer->run(),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [this](const std::exception_ptr&) { ended = true; }));
  }
  std::string version(const std::string& pod) const {
    const auto found = informer->store().get("default/" + pod);
    return found ? found->resource_version : "-";
  }
  // Runs until the store holds this version of the pod.
  void until(const std::string& pod, const std::string& wanted) {
    run_until([&] { return version(pod) == wanted; });
  }
  void until_asked(std::size_t requests) {
    run_until([&] { return server.targets().size() >= requests; });
  }
  bool asked(std::size_t i, const std::string& part) const {
    return server.targets().at(i).find(part) != std::string::npos;
  }
  bool is_watch(std::size_t i) const { return asked(i, "watch=1"); }

  api::Interner interner;
  std::optional<Informer<api::Pod>> informer;
  boost::asio::cancellation_signal stop;
  bool ended = false;
};

}  // namespace

TEST_CASE_FIXTURE(Watching, "list and watch: the store follows the server") {
  server.list({pod_json("a", "1", "n1"), pod_json("b", "2")}, "10")
      .watch(
          {frame_json("ADDED", pod_json("c", "11")) + frame_json("MODIFIED", pod_json("a", "12")),
           frame_json("DELETED", pod_json("b", "13"))});
  start();
  until("b", "-");
  run_until([this] { return version("c") == "11"; });
  CHECK(version("a") == "12");
  CHECK(informer->store().ready());
  CHECK(server.targets()[0] == "/api/v1/pods?resourceVersion=0&limit=500");
  CHECK(asked(1, "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds="));
  CHECK(asked(1, "&resourceVersion=10"));
  CHECK(shows(R"(kwatt_lists_total{resource="pods",result="success"} 1)"));
  CHECK(shows(R"(kwatt_watch_events_total{resource="pods",type="ADDED"} 1)"));
  CHECK(shows(R"(kwatt_watch_failures_total{reason="expired",resource="pods"} 0)"));
}

TEST_CASE_FIXTURE(Watching, "list: selectors are sent, percent-encoded, with list and watch") {
  server.list({}, "10").watch({});
  WatchTarget target;
  target.namespace_name = "team";
  target.field_selector = "spec.nodeName=n1";
  target.label_selector = "a in (b,c)";
  start(quick(), target);
  until_asked(2);
  for (std::size_t i : {0U, 1U}) {
    CHECK(asked(i,
                "/api/v1/namespaces/team/pods?fieldSelector=spec.nodeName%3Dn1"
                "&labelSelector=a%20in%20%28b%2Cc%29&"));
  }
}

TEST_CASE_FIXTURE(Watching, "list: all pages make one list") {
  server.list({pod_json("a", "1")}, "10", "t/1=").list({pod_json("b", "2")}, "10").watch({});
  start();
  until_asked(3);
  CHECK(server.targets()[1] == "/api/v1/pods?limit=500&continue=t%2F1%3D");
  CHECK(informer->store().size() == 2);
  CHECK(asked(2, "resourceVersion=10"));
}

TEST_CASE_FIXTURE(Watching, "list: an expired continue token starts over in one piece") {
  server.list({pod_json("gone", "1")}, "10", "t")
      .status(410, "Expired")
      .list({pod_json("a", "20")}, "21")
      .watch({});
  start();
  until_asked(4);
  CHECK(server.targets()[2] == "/api/v1/pods");
  CHECK(informer->store().size() == 1);
  CHECK(version("gone") == "-");
}

TEST_CASE_FIXTURE(Watching,
                  "list: a version the server has not reached is read with quorum at once") {
  server.list({pod_json("a", "1")}, "10")
      .watch({"rubbish"}, End::clean)
      .status(504, "Timeout", {}, R"({"causes":[{"reason":"ResourceVersionTooLarge"}]})")
      .list({pod_json("a", "3")}, "30")
      .watch({});
  start();
  until("a", "3");
  CHECK(server.targets()[2] == "/api/v1/pods?resourceVersion=10");
  CHECK(server.targets()[3] == "/api/v1/pods?limit=500");
}

TEST_CASE_FIXTURE(Watching, "list: more than 8 MiB of items pass through") {
  std::vector<std::string> items;
  const std::string padding(20'000, 'x');
  for (int i = 0; i < 600; ++i) {
    std::string item = pod_json("p" + std::to_string(i), std::to_string(i + 1));
    item.insert(item.find("\"spec\""), R"("padding":")" + padding + "\",");
    items.push_back(std::move(item));
  }
  server.list(items, "700").watch({});
  start();
  until("p599", "600");
  CHECK(informer->store().size() == 600);
}

TEST_CASE_FIXTURE(Watching, "list: broken in the middle it changes nothing and is repeated") {
  const std::string whole = test::list_json({pod_json("a", "1"), pod_json("b", "2")}, "10");
  const std::string half = whole.substr(0, whole.size() - 60);
  server
      .raw(test::json_response(200, half))  // valid HTTP, half a list
      .raw(test::Script{}.send(test::chunked_head()).send(test::chunk(half)).close())
      .raw(test::json_response(200, "{\"kind\":\"Pod\"}"))  // no list at all
      .raw(test::json_response(200, R"({"metadata":{"resourceVersion":"1"},"items":[7]})"))
      .list({pod_json("a", "1")}, "")  // without a version
      .raw(test::json_response(200, test::status_json(500, "InternalError")))
      .list({pod_json("c", "3")}, "10")
      .watch({});
  start();
  until_asked(8);
  CHECK(informer->store().size() == 1);
  CHECK(version("c") == "3");
}

TEST_CASE_FIXTURE(Watching, "list: an object that cannot be read must not look absent") {
  server.list({pod_json("a", "1")}, "10")
      .watch({"nonsense"}, End::clean)
      .raw(test::json_response(
          200, test::list_json({R"({"metadata":{"name":"a","labels":"none"}})"}, "11")))
      .list({pod_json("a", "12")}, "12")
      .watch({});
  start();
  until("a", "1");
  bool vanished = false;
  run_until([&] {
    vanished = vanished || version("a") == "-";
    return version("a") == "12";
  });
  CHECK_FALSE(vanished);
}

TEST_CASE_FIXTURE(Watching, "list: a server that says nothing is given up and asked again") {
  server.raw(test::Script{}.send(test::chunked_head()).stall())
      .list({pod_json("a", "1")}, "10")
      .watch({});
  ReflectorOptions options = quick();
  options.list_idle = 50ms;
  start(options);
  until("a", "1");
  CHECK(shows(R"(kwatt_watch_failures_total{reason="unavailable",resource="pods"} 1)"));
}

TEST_CASE_FIXTURE(Watching, "watch: 410 at connect relists from scratch") {
  server.list({pod_json("a", "1"), pod_json("b", "1")}, "10")
      .status(410, "Expired")
      .list({pod_json("a", "20")}, "21")
      .watch({});
  start();
  until("a", "20");
  until_asked(4);
  CHECK(server.targets()[2] == "/api/v1/pods?limit=500");
  CHECK(version("b") == "-");
  CHECK(asked(3, "resourceVersion=21"));
}

TEST_CASE_FIXTURE(Watching, "watch: 410 inside the stream relists from scratch, for both reasons") {
  std::string reason;
  SUBCASE("Expired") {
    reason = "Expired";
  }
  SUBCASE("Gone") {
    reason = "Gone";
  }
  server.list({pod_json("a", "1")}, "10")
      .watch({frame_json("ADDED", pod_json("b", "11")),
              frame_json("ERROR", test::status_json(410, reason))})
      .list({pod_json("c", "30")}, "31")
      .watch({});
  start();
  until("c", "30");
  until_asked(4);
  CHECK(server.targets()[2] == "/api/v1/pods?limit=500");
  CHECK(informer->store().size() == 1);
}

TEST_CASE_FIXTURE(Watching, "watch: a bare Status in place of a frame is an error, not a Pod") {
  server.list({pod_json("a", "1")}, "10")
      .watch({test::status_json(410, "Gone")})
      .list({pod_json("c", "30")}, "31")
      .watch({});
  start();
  until("c", "30");
  CHECK(server.targets()[2] == "/api/v1/pods?limit=500");
}

TEST_CASE_FIXTURE(Watching, "watch: a Status delivered as an object never gets into the store") {
  server.list({pod_json("a", "1")}, "10")
      .watch({frame_json("ADDED", test::status_json(500, "InternalError"))})
      .watch({frame_json("ADDED", pod_json("b", "11"))});
  ReflectorOptions options = quick();
  start(options);
  run_until([&] { return server.targets().size() >= 3; });
  CHECK(informer->store().size() == 1);
}

TEST_CASE_FIXTURE(Watching, "watch: a clean end goes on from the last event or bookmark") {
  server.list({}, "10")
      .watch({frame_json("ADDED", pod_json("a", "11"))}, End::clean)
      .watch({bookmark_json("20")}, End::clean)
      .watch({frame_json("DELETED", pod_json("a", "25"))}, End::clean)
      .watch({});
  start();
  until_asked(5);
  CHECK(asked(1, "resourceVersion=10"));
  CHECK(asked(2, "resourceVersion=11"));
  CHECK(asked(3, "resourceVersion=20"));
  CHECK(asked(4, "resourceVersion=25"));
  CHECK(informer->store().size() == 0);
}

TEST_CASE_FIXTURE(Watching, "watch: frames cut anywhere, several in one piece, without newlines") {
  std::string stream;
  for (int i = 0; i < 20; ++i) {
    stream += frame_json("ADDED", pod_json("p" + std::to_string(i), std::to_string(11 + i)));
    if (i % 2 == 0) stream.pop_back();
  }
  std::vector<std::string> chunks;
  for (std::size_t at = 0, size = 1; at < stream.size(); at += size, size = size * 3 % 101 + 1) {
    chunks.push_back(stream.substr(at, size));
  }
  server.list({}, "10").watch(chunks);
  start();
  until("p19", "30");
  CHECK(informer->store().size() == 20);
}

TEST_CASE_FIXTURE(Watching, "watch: half a frame at the end is dropped and comes again whole") {
  End end = End::clean;
  SUBCASE("clean end") {
    end = End::clean;
  }
  SUBCASE("cut off") {
    end = End::cut;
  }
  SUBCASE("reset") {
    end = End::reset;
  }
  const std::string next = frame_json("ADDED", pod_json("b", "12"));
  server.list({}, "10")
      .watch({frame_json("ADDED", pod_json("a", "11")), next.substr(0, next.size() / 2)}, end)
      .watch({next});
  start();
  until("b", "12");
  CHECK(version("a") == "11");
  CHECK(is_watch(2));
  CHECK(asked(2, "resourceVersion=11"));
}

TEST_CASE_FIXTURE(Watching, "watch: a connection that breaks goes on at the same version") {
  server.list({}, "10")
      .watch({frame_json("ADDED", pod_json("a", "11"))}, End::reset)
      .watch({frame_json("ADDED", pod_json("b", "12"))}, End::cut)
      .watch({frame_json("ADDED", pod_json("c", "13"))});
  start();
  until("c", "13");
  CHECK(server.targets().size() == 4);
  CHECK(is_watch(2));
  CHECK(is_watch(3));
}

TEST_CASE_FIXTURE(Watching, "watch: 429 waits for Retry-After and does not list") {
  server.list({pod_json("a", "1")}, "10")
      .status(429, "TooManyRequests", {{"Retry-After", "1"}})
      .watch({bookmark_json("12")});
  start();
  const auto began = std::chrono::steady_clock::now();
  until_asked(3);
  CHECK(std::chrono::steady_clock::now() - began >= 990ms);
  CHECK(is_watch(2));
  CHECK(asked(2, "resourceVersion=10"));
}

TEST_CASE_FIXTURE(Watching, "watch: 500 in the stream is retried at the same version") {
  server.list({pod_json("a", "1")}, "10")
      .watch({frame_json("ERROR", test::status_json(500, "InternalError"))})
      .watch({frame_json("ADDED", pod_json("b", "11"))});
  start();
  until("b", "11");
  CHECK(is_watch(2));
  CHECK(asked(2, "resourceVersion=10"));
}

TEST_CASE_FIXTURE(Watching, "watch: a silent peer is given up after its timeout and a margin") {
  ReflectorOptions options = quick();
  options.watch.watch_minimum = options.watch.watch_maximum = 1s;
  options.watch.idle_margin = 100ms;
  server.list({}, "10").watch({}).watch({frame_json("ADDED", pod_json("a", "11"))});
  start(options);
  const auto began = std::chrono::steady_clock::now();
  until("a", "11");
  CHECK(std::chrono::steady_clock::now() - began >= 1100ms);
  CHECK(asked(1, "timeoutSeconds=1"));
  CHECK(asked(2, "resourceVersion=10"));
}

TEST_CASE_FIXTURE(Watching,
                  "watch: one on which nothing comes, no bookmark either, is opened anew soon") {
  ReflectorOptions options = quick();
  options.watch_silence = 100ms;
  server.list({}, "10")
      .watch({bookmark_json("12")})
      .watch({frame_json("ADDED", pod_json("a", "13"))});
  start(options);
  until("a", "13");
  // At the version of the bookmark; nothing is listed again.
  CHECK(asked(2, "resourceVersion=12"));
  CHECK(asked(2, "watch=1"));
}

TEST_CASE_FIXTURE(Watching, "watch: an oversized frame is refused, and listed around") {
  ReflectorOptions options = quick();
  options.limits.max_value = 64 * 1024;
  server.list({}, "10")
      .watch({R"({"type":"ADDED","object":{"metadata":{"name":")" + std::string(70'000, 'x')})
      .list({pod_json("a", "12")}, "12")
      .watch({});
  start(options);
  until("a", "12");
  CHECK(server.targets()[2] == "/api/v1/pods?resourceVersion=10");
}

TEST_CASE_FIXTURE(Watching,
                  "watch: rubbish, an event without a version or without an object: list again") {
  server.list({}, "10")
      .watch({"<html>"})
      .list({}, "11")
      .watch({frame_json("ADDED", R"({"metadata":{"name":"a"}})")})
      .list({}, "12")
      .watch({R"({"type":"ADDED"})"})
      .list({pod_json("b", "13")}, "13")
      .watch({});
  start();
  until("b", "13");
  CHECK(server.targets()[2] == "/api/v1/pods?resourceVersion=10");
  CHECK(server.targets()[4] == "/api/v1/pods?resourceVersion=11");
  CHECK(server.targets()[6] == "/api/v1/pods?resourceVersion=12");
}

TEST_CASE_FIXTURE(Watching, "watch: an unknown event type is skipped") {
  server.list({}, "10").watch(
      {frame_json("NOVELTY", pod_json("x", "11")), frame_json("ADDED", pod_json("a", "12"))});
  start();
  until("a", "12");
  CHECK(version("x") == "-");
}

TEST_CASE_FIXTURE(Watching, "watch: more than 8 MiB in one stream pass through") {
  const std::string padding(50'000, 'x');
  std::vector<std::string> chunks;
  for (int i = 0; i < 220; ++i) {
    std::string object = pod_json("a", std::to_string(11 + i));
    object.insert(object.find("\"spec\""), R"("padding":")" + padding + "\",");
    chunks.push_back(frame_json("MODIFIED", object));
  }
  server.list({pod_json("a", "1")}, "10").watch(chunks);
  start();
  until("a", "230");
  CHECK(server.targets().size() == 2);
}

TEST_CASE_FIXTURE(Watching, "401, then a new token: the next attempt uses it") {
  const test::Folder folder;
  folder.write("token", "old");
  Config with = config();
  with.token_file = folder.path("token");
  connect(with);
  server.list({pod_json("a", "1")}, "10")
      .status(401, "Unauthorized")
      .list({pod_json("a", "1")}, "10")
      .watch({frame_json("ADDED", pod_json("b", "11"))});
  start();
  until("a", "1");
  folder.write("token", "new");
  until("b", "11");
  CHECK(server.peer().requests()[1].find("Bearer old") != std::string::npos);
  CHECK(server.peer().requests()[2].find("Bearer new") != std::string::npos);
}

TEST_CASE_FIXTURE(Watching, "a server that is not there: patience, then everything as usual") {
  server.peer().hang_up_on_connect(true);
  start();
  run_until([this] { return server.peer().connections() >= 3; });
  CHECK_FALSE(informer->store().ready());
  server.list({pod_json("a", "1")}, "10").watch({});
  server.peer().hang_up_on_connect(false);
  until("a", "1");
}

TEST_CASE_FIXTURE(Watching, "contact: lists, accepted watches, events and bookmarks count") {
  server.list({}, "10").watch({bookmark_json("11")});
  start();
  const MonotonicPoint before = clock.monotonic();
  until_asked(2);
  run_for(20ms);
  CHECK(informer->store().last_contact() > before);
  CHECK(shows(R"(kwatt_watch_events_total{resource="pods",type="BOOKMARK"} 1)"));
}

TEST_CASE_FIXTURE(Watching, "ready: waiting names the stores that are missing") {
  server.raw(test::Script{}.stall());
  start();
  const auto late = test::run_task(io, wait_until_ready({&informer->store()}, 60ms));
  REQUIRE(late.has_error());
  CHECK(late.error().code == ErrorCode::timeout);
  CHECK(late.error().message == "no complete list of pods within 60ms");
}

TEST_CASE_FIXTURE(Watching, "ready: waiting ends with the first complete list") {
  server.list({pod_json("a", "1")}, "10").watch({});
  start();
  CHECK(test::run_task(io, wait_until_ready({&informer->store()}, 5s)).has_value());
}
