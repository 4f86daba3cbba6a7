// The recorder: what is written, how often it is tried, what is dropped. And finalizers.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "kube/conflict.hpp"
#include "kube/events.hpp"
#include "kube/finalizer.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

// Notes every write and answers from a list (then with success).
class WriteLog final : public test::StubClient {
 public:
  std::vector<std::string> writes;
  std::deque<Error> failures;

  Task<Text> create(const Resource& resource, std::string space, std::string body) override {
    writes.push_back("create " + resource.plural + " " + space + " " + body);
    co_return outcome();
  }
  Task<Text> patch(const Resource& resource, Name name, PatchType type, std::string manager,
                   std::string subresource, std::string body) override {
    writes.push_back("patch " + resource.plural + " " + name.namespace_name + "/" + name.name +
                     (type == PatchType::merge ? " merge " : " json ") + manager + subresource +
                     " " + body);
    co_return outcome();
  }

 private:
  Text outcome() {
    if (failures.empty()) return std::string("{}");
    const Error error = failures.front();
    failures.pop_front();
    return error;
  }
};

struct Recorder {
  Recorder() {
    boost::asio::co_spawn(io, recorder.run(),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [this](const std::exception_ptr&) { ended = true; }));
  }
  EventNote note(const std::string& text, const std::string& node = "node-1") {
    EventNote made;
    made.regarding = {"v1", "Node", "", node, "u-1"};
    made.related = ObjectReference{"kwatt.dev/v1alpha1", "NodePower", "", node, "u-2"};
    made.reason = "Idle";
    made.action = "PowerOff";
    made.note = text;
    return made;
  }
  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    io.restart();
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error{"did not happen"};
      io.run_one_for(5ms);
    }
  }
  bool wrote(std::size_t i, const std::string& part) {
    return client.writes.at(i).find(part) != std::string::npos;
  }
  bool shows(const std::string& line) { return metrics.render().find(line) != std::string::npos; }

  boost::asio::io_context io;
  ManualClock clock{*parse_rfc3339("2026-11-20T12:00:00Z")};
  Metrics metrics;
  WriteLog client;
  EventRecorder recorder{
      io.get_executor(),
      client,
      {.controller = "kwatt.dev/controller", .instance = "pod-1", .queue_limit = 5},
      clock,
      metrics};
  boost::asio::cancellation_signal stop;
  bool ended = false;
};

}  // namespace

TEST_CASE_FIXTURE(Recorder, "recorder: an event with everything in it, then a series") {
  recorder.record(note("powered off"));
  run_until([this] { return client.writes.size() == 1; });
  CHECK(wrote(0, "create events default "));
  for (const char* part :
       {R"("apiVersion":"events.k8s.io/v1")", R"("reason":"Idle")", R"("action":"PowerOff")",
        R"("note":"powered off")", R"("type":"Normal")", R"("kind":"NodePower")",
        R"("reportingController":"kwatt.dev/controller")", R"("reportingInstance":"pod-1")",
        R"("eventTime":"2026-11-20T12:00:00.000000Z")"}) {
    CHECK_MESSAGE(wrote(0, part), client.writes[0]);
  }
  clock.advance(5s);
  recorder.record(note("powered off"));
  run_until([this] { return client.writes.size() == 2; });
  CHECK(wrote(1, "patch events default/node-1."));
  CHECK(wrote(1, R"("series":{"count":2,"lastObservedTime":"2026-11-20T12:00:05.000000Z"})"));
  CHECK(shows("kwatt_events_written_total 2"));
}

TEST_CASE_FIXTURE(Recorder, "recorder: a namespaced object's events live in its namespace") {
  EventNote about = note("x");
  about.regarding = {"v1", "Pod", "team", "p", "u"};
  recorder.record(about);
  run_until([this] { return client.writes.size() == 1; });
  CHECK(wrote(0, "create events team "));
}

TEST_CASE_FIXTURE(Recorder, "recorder: what may pass is tried again, what cannot is dropped") {
  client.failures = {fail(ErrorCode::unavailable, "later"), fail(ErrorCode::forbidden, "never")};
  recorder.record(note("x"));
  run_until([this] { return client.writes.size() == 2; });
  CHECK(client.writes[0] == client.writes[1]);
  run_until([this] { return shows(R"(kwatt_events_dropped_total{reason="error"} 1)"); });
  // It is not taken for a series of something that does not exist.
  recorder.record(note("x"));
  run_until([this] { return client.writes.size() == 3; });
  CHECK(wrote(2, "create events"));
}

TEST_CASE_FIXTURE(Recorder, "recorder: never waits: a full queue drops and counts") {
  client.failures = {fail(ErrorCode::unavailable, "later")};
  for (int i = 0; i < 9; ++i) recorder.record(note("x", "node-" + std::to_string(i)));
  run_until([this] { return client.writes.size() >= 6; });
  CHECK(shows(R"(kwatt_events_dropped_total{reason="queue_full"} 4)"));
}

TEST_CASE_FIXTURE(Recorder, "recorder: too many about one object are dropped and counted") {
  for (int i = 0; i < 40; ++i) {
    recorder.record(note("x"));
    run_until([this] { return true; });
    io.poll();
  }
  CHECK(shows(R"(kwatt_events_dropped_total{reason="rate_limited"} 15)"));
}

TEST_CASE_FIXTURE(Recorder, "recorder: stop writes what is queued, then ends") {
  recorder.record(note("a", "node-1"));
  recorder.record(note("b", "node-2"));
  recorder.stop();
  run_until([this] { return ended; });
  CHECK(client.writes.size() == 2);
}

namespace {

api::ObjectMeta meta(std::vector<std::string> finalizers) {
  api::ObjectMeta made;
  made.name = "default";
  made.resource_version = "7";
  made.finalizers = std::move(finalizers);
  return made;
}

struct Finalizers {
  Result<void> add(std::vector<std::string> present) {
    return test::run_task(io, add_finalizer(client, resources::energy_policies(),
                                            meta(std::move(present)), "kwatt.dev/f", "manager"));
  }
  Result<void> remove(std::vector<std::string> present) {
    return test::run_task(io, remove_finalizer(client, resources::energy_policies(),
                                               meta(std::move(present)), "kwatt.dev/f", "manager"));
  }
  boost::asio::io_context io;
  WriteLog client;
};

}  // namespace

TEST_CASE_FIXTURE(Finalizers, "finalizer: added beside others, or as the first under a test") {
  CHECK(add({"other"}).has_value());
  CHECK(add({}).has_value());
  CHECK(add({"kwatt.dev/f"}).has_value());  // there already: no write
  REQUIRE(client.writes.size() == 2);
  CHECK(client.writes[0].starts_with("patch energypolicies /default json manager "));
  CHECK(client.writes[0].find("/metadata/finalizers/-") != std::string::npos);
  CHECK(client.writes[1].find(R"("op":"test")") != std::string::npos);
  CHECK(client.writes[1].find("resourceVersion") != std::string::npos);
}

TEST_CASE_FIXTURE(Finalizers, "finalizer: removed at its index, tested first") {
  CHECK(remove({"other", "kwatt.dev/f"}).has_value());
  CHECK(remove({"other"}).has_value());  // not there: no write
  REQUIRE(client.writes.size() == 1);
  const std::string& body = client.writes[0];
  const auto test = body.find(R"("op":"test")"), removal = body.find(R"("op":"remove")");
  CHECK(test < removal);
  CHECK(removal != std::string::npos);
  CHECK(body.find("/metadata/finalizers/1") != std::string::npos);
}

TEST_CASE_FIXTURE(Finalizers, "finalizer: a failed test is a conflict, a vanished object is fine") {
  client.failures = {fail(ErrorCode::invalid_argument, "422"), fail(ErrorCode::not_found, "404"),
                     fail(ErrorCode::forbidden, "403")};
  CHECK(remove({"kwatt.dev/f"}).error().code == ErrorCode::conflict);
  CHECK(remove({"kwatt.dev/f"}).has_value());
  CHECK(remove({"kwatt.dev/f"}).error().code == ErrorCode::forbidden);
}

TEST_CASE("conflict: read and decide again, five times at most; anything else is returned") {
  struct Case {
    const char* name;
    int conflicts;
    ErrorCode then;  // internal: success
    int want_calls;
    bool want_ok;
  };
  const Case cases[] = {
      {"none", 0, ErrorCode::internal, 1, true},
      {"two", 2, ErrorCode::internal, 3, true},
      {"always", 99, ErrorCode::internal, 5, false},
      {"another error", 1, ErrorCode::forbidden, 2, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    boost::asio::io_context io;
    int calls = 0;
    const std::function<Task<Result<int>>()> attempt = [&]() -> Task<Result<int>> {
      ++calls;
      if (calls <= c.conflicts) co_return fail(ErrorCode::conflict, "changed");
      if (c.then != ErrorCode::internal) co_return fail(c.then, "no");
      co_return calls;
    };
    const auto outcome = test::run_task(io, retry_on_conflict<int>(attempt));
    CHECK(outcome.has_value() == c.want_ok);
    CHECK(calls == c.want_calls);
  }
}
