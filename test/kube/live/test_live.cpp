// Our client against a real kube-apiserver: what the fake one cannot prove. Run by
// test_live_api_server.py, which starts the API server and sets KUBECONFIG.
#include <set>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/patch.hpp"
#include "kube/events.hpp"
#include "kube/finalizer.hpp"
#include "kube/indexes.hpp"
#include "kube/informer.hpp"
#include "kube/lease_election.hpp"
#include "kube/status_error.hpp"
#include "net/run.hpp"
#include "test/support/run_task.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

const Resource& namespaces() {
  static const Resource resource{"", "v1", "namespaces", false};
  return resource;
}

// Each case has a namespace of its own.
struct Live {
  Live() {
    auto config = find_config({});
    REQUIRE_MESSAGE(config.has_value(), config.error().text());
    ClientOptions options;
    options.user_agent = "kwatt-live-test";
    client = make_client(io.get_executor(), *config, options, clock);
    static int serial = 0;
    space = fmt::format("live-{:x}-{}", clock.now().time_since_epoch().count(), serial++);
    require(
        client->create(namespaces(), "", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", space)));
  }

  template <class T>
  Result<T> run(Task<Result<T>> task, Duration limit = 30s) {
    return test::run_task(io, std::move(task), limit);
  }
  std::string require(Task<Result<std::string>> task) {
    auto answer = run(std::move(task));
    REQUIRE_MESSAGE(answer.has_value(), answer.error().text());
    return *answer;
  }
  template <class T>
  static T decoded(const std::string& json) {
    T object;
    const auto done = api::decode(json, object);
    REQUIRE_MESSAGE(done.has_value(), done.error().text());
    return object;
  }
  void run_until(const std::function<bool()>& done, Duration limit = 20s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    io.restart();
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error{"did not happen"};
      io.run_one_for(20ms);
    }
  }

  api::Node make_node(const std::string& suffix = "node") {
    const std::string name = space + "-" + suffix;
    return decoded<api::Node>(require(client->create(
        resources::nodes(), "", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name))));
  }
  api::Pod make_pod(const std::string& name, const std::string& node) {
    return decoded<api::Pod>(require(
        client->create(resources::pods(), space,
                       fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"app":"web"}}}},)"
                                   R"("spec":{{"nodeName":"{}","terminationGracePeriodSeconds":0,)"
                                   R"("containers":[{{"name":"c","image":"none"}}]}}}})",
                                   name, node))));
  }
  void make_running(const std::string& pod) {
    require(client->patch(resources::pods(), Name{space, pod}, Client::PatchType::merge, "live",
                          "status",
                          R"({"status":{"phase":"Running","conditions":[)"
                          R"({"type":"Ready","status":"True"}]}})"));
  }
  void make_budget(const std::string& name) {
    require(
        client->create(resources::pod_disruption_budgets(), space,
                       fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"maxUnavailable":0,)"
                                   R"("selector":{{"matchLabels":{{"app":"web"}}}}}}}})",
                                   name)));
  }
  std::string make_lease(const std::string& name) {
    return require(client->create(resources::leases(), space,
                                  fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name)));
  }

  boost::asio::io_context io;
  SystemClock clock;
  Metrics metrics;
  std::unique_ptr<Client> client;
  std::string space;
};

}  // namespace

TEST_CASE_FIXTURE(Live, "live: refusals arrive as the codes callers act on") {
  const Name lease{space, "l"};
  CHECK(run(client->get(resources::leases(), lease)).error().code == ErrorCode::not_found);
  const std::string first = make_lease("l");
  CHECK(run(client->create(resources::leases(), space, R"({"metadata":{"name":"l"}})"))
            .error()
            .code == ErrorCode::already_exists);
  require(client->replace(resources::leases(), lease, first));
  // The version in `first` is the old one now that a second write changed something.
  require(client->patch(resources::leases(), lease, Client::PatchType::merge, "live", "",
                        R"({"spec":{"holderIdentity":"x"}})"));
  CHECK(run(client->replace(resources::leases(), lease, first)).error().code ==
        ErrorCode::conflict);
  CHECK(run(client->create(resources::leases(), space, R"({"metadata":{"name":"Not Legal"}})"))
            .error()
            .code == ErrorCode::invalid_argument);
  CHECK(run(client->remove(resources::leases(), lease, "another-uid")).error().code ==
        ErrorCode::conflict);
  CHECK(run(client->remove(resources::leases(), lease, decoded<api::Lease>(first).meta.uid))
            .has_value());
}

TEST_CASE_FIXTURE(Live, "live: JSON patch with a test, merge patch and server-side apply") {
  const api::Node node = make_node();
  const Name name{"", node.meta.name};
  const auto patch = [&](Client::PatchType type, const std::string& sub, const std::string& body) {
    return run(client->patch(resources::nodes(), name, type, "kwatt-controller", sub, body));
  };
  const std::string passing = api::JsonPatch{}
                                  .test("/metadata/name", node.meta.name)
                                  .add("/metadata/labels", api::StringMap{{"a", "1"}})
                                  .text();
  CHECK(patch(Client::PatchType::json, "", passing).has_value());
  const std::string failing =
      api::JsonPatch{}.test("/metadata/name", "other").remove("/metadata/labels").text();
  CHECK(patch(Client::PatchType::json, "", failing).error().code == ErrorCode::invalid_argument);
  CHECK(patch(Client::PatchType::merge, "", R"({"metadata":{"annotations":{"kwatt.dev/x":"y"}}})")
            .has_value());

  const auto apply = [&](const std::string& labels) {
    const auto answer = patch(
        Client::PatchType::apply, "",
        fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}","labels":{}}}}})",
                    node.meta.name, labels));
    REQUIRE_MESSAGE(answer.has_value(), answer.error().text());
    return decoded<api::Node>(*answer);
  };
  CHECK(apply(R"({"kwatt.dev/capped":"true"})").meta.labels.get("kwatt.dev/capped") == "true");
  // A field that is no longer sent is given up; what others set stays.
  const api::Node after = apply("{}");
  CHECK_FALSE(after.meta.labels.contains("kwatt.dev/capped"));
  CHECK(after.meta.labels.get("a") == "1");
  CHECK(after.meta.annotations.get("kwatt.dev/x") == "y");

  const auto status =
      patch(Client::PatchType::apply, "status",
            fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}"}},"status":)"
                        R"({{"conditions":[{{"type":"Suspended","status":"True","reason":"Idle",)"
                        R"("message":"m"}}]}}}})",
                        node.meta.name));
  REQUIRE_MESSAGE(status.has_value(), status.error().text());
  CHECK(api::find_condition(decoded<api::Node>(*status).conditions, "Suspended") != nullptr);
}

TEST_CASE_FIXTURE(Live, "live: finalizers are added and removed beside others") {
  api::Node node = make_node();
  const auto read = [&] {
    node = decoded<api::Node>(require(client->get(resources::nodes(), Name{"", node.meta.name})));
    return node.meta.finalizers;
  };
  // The node controller writes to a new Node, too: read and decide again, as a reconciler does.
  const auto add = [&](const std::string& finalizer) {
    for (int attempt = 0;; ++attempt) {
      const auto added =
          run(add_finalizer(*client, resources::nodes(), node.meta, finalizer, "live"));
      if (added || added.error().code != ErrorCode::conflict || attempt == 5) return added;
      read();
    }
  };
  const api::Node old = node;
  REQUIRE(add("kwatt.dev/one").has_value());
  CHECK(read() == std::vector<std::string>{"kwatt.dev/one"});
  REQUIRE(add("kwatt.dev/two").has_value());
  CHECK(read().size() == 2);
  // From a stale copy that knows of no finalizers: a conflict, nothing is lost.
  CHECK(run(add_finalizer(*client, resources::nodes(), old.meta, "kwatt.dev/three", "live"))
            .error()
            .code == ErrorCode::conflict);
  REQUIRE(run(remove_finalizer(*client, resources::nodes(), node.meta, "kwatt.dev/one", "live"))
              .has_value());
  CHECK(run(remove_finalizer(*client, resources::nodes(), node.meta, "kwatt.dev/one", "live"))
            .error()
            .code == ErrorCode::conflict);
  CHECK(read() == std::vector<std::string>{"kwatt.dev/two"});
  REQUIRE(run(remove_finalizer(*client, resources::nodes(), node.meta, "kwatt.dev/two", "live"))
              .has_value());
}

TEST_CASE_FIXTURE(Live, "live: eviction honours the uid and the budgets") {
  const api::Node node = make_node();
  const api::Pod pod = make_pod("web", node.meta.name);
  make_running("web");
  const Name name{space, "web"};
  // Another uid: our pod is gone, this one stays.
  CHECK(run(client->evict(name, "another-uid")).has_value());
  CHECK(run(client->get(resources::pods(), name)).has_value());
  make_budget("first");
  const auto blocked = run(client->evict(name, pod.uid));
  REQUIRE(blocked.has_error());
  CHECK(blocked.error().code == ErrorCode::too_many_requests);
  CHECK_FALSE(blocked.error().server_text.empty());
  make_budget("second");
  CHECK(run(client->evict(name, pod.uid)).error().code == ErrorCode::internal);
  for (const char* budget : {"first", "second"}) {
    CHECK(run(client->remove(resources::pod_disruption_budgets(), Name{space, budget}, ""))
              .has_value());
  }
  CHECK(run(client->evict(name, pod.uid)).has_value());
  run_until([&] { return run(client->get(resources::pods(), name)).has_error(); });
  CHECK(run(client->evict(name, pod.uid)).has_value());  // gone already
}

TEST_CASE_FIXTURE(Live, "live: the informer follows pods, with its indexes") {
  const api::Node node = make_node();
  make_pod("before", node.meta.name);
  api::Interner interner;
  WatchTarget target;
  target.resource = resources::pods();
  target.namespace_name = space;
  Informer<api::Pod> informer(
      *client, target,
      [&](std::string_view json) -> Result<api::Pod> {
        api::Pod pod;
        if (auto done = api::decode(json, pod, &interner); !done) return done.error();
        return pod;
      },
      clock, metrics, pod_indexes());
  boost::asio::cancellation_signal stop;
  bool ended = false;
  boost::asio::co_spawn(io, informer.run(),
                        boost::asio::bind_cancellation_slot(
                            stop.slot(), [&](const std::exception_ptr&) { ended = true; }));
  REQUIRE(run(wait_until_ready({&informer.store()}, 10s)).has_value());
  CHECK(informer.store().get(space + "/before") != nullptr);
  make_pod("after", node.meta.name);
  run_until([&] { return informer.store().get(space + "/after") != nullptr; });
  CHECK(informer.store().by_index(kPodsByNode, node.meta.name).size() == 2);
  make_running("after");
  run_until(
      [&] { return informer.store().get(space + "/after")->phase == api::PodPhase::running; });
  CHECK(informer.store().get(space + "/after")->ready);
  CHECK(run(client->remove(resources::pods(), Name{space, "before"}, "")).has_value());
  run_until([&] { return informer.store().size() == 1; });
  stop.emit(boost::asio::cancellation_type::terminal);
  run_until([&] { return ended; });
}

TEST_CASE_FIXTURE(Live, "live: pages, versions of the past and of the future") {
  for (int i = 0; i < 5; ++i) make_lease("l" + std::to_string(i));
  const std::string path = path_of(resources::leases(), space);
  const auto ask = [&](const std::string& query) {
    auto opened = run(client->open(path + query));
    REQUIRE(opened.has_value());
    const int status = (*opened)->status();
    const std::string retry_after((*opened)->headers().get("Retry-After"));
    auto body = run((*opened)->read_all(1 << 20, 10s));
    REQUIRE(body.has_value());
    return std::tuple{status, retry_after, *body};
  };
  // Paged: all items, one by one, each exactly once.
  std::set<std::string> names;
  std::string token;
  int pages = 0;
  do {
    const auto [status, after, body] =
        ask("?limit=2" + (token.empty() ? "" : "&continue=" + token));
    REQUIRE(status == 200);
    api::ListDecoder<api::Lease> list(nullptr,
                                      [&](api::Lease&& lease) { names.insert(lease.meta.name); });
    REQUIRE(list.feed(body).has_value());
    const auto meta = list.finish();
    REQUIRE(meta.has_value());
    CHECK_FALSE(meta->resource_version.empty());
    token = meta->continue_token;
    ++pages;
  } while (!token.empty() && pages < 10);
  CHECK(pages == 3);
  CHECK(names.size() == 5);
  // The future: refused with a cause we know.
  const auto [status, after, body] = ask("?resourceVersion=999999999999");
  CHECK(status == 504);
  CHECK(resource_version_too_large(status_of_response(status, after, body)));
}

TEST_CASE_FIXTURE(Live, "live: two candidates, an orderly hand-over") {
  LeaseOptions options;
  options.lease_duration = 3s;
  options.renew_deadline = 2s;
  options.retry_period = 500ms;
  struct Candidate {
    LeaseElection election;
    int started = 0, lost = 0;
    bool ended = false;
  };
  const auto make = [&](const char* identity) {
    options.identity = identity;
    return std::unique_ptr<Candidate>(new Candidate{
        {io.get_executor(), *client, Name{space, "leader"}, options, clock, metrics}});
  };
  const auto start = [&](Candidate& c) {
    boost::asio::co_spawn(io, c.election.run([&c] { ++c.started; }, [&c] { ++c.lost; }),
                          [&c](const std::exception_ptr&) { c.ended = true; });
  };
  const auto a = make("a"), b = make("b");
  start(*a);
  run_until([&] { return a->started == 1; });
  start(*b);
  test::run_task(io, net::sleep(1500ms));
  CHECK(a->election.leading());
  CHECK(b->started == 0);
  CHECK(b->election.leader() == "a");
  test::run_task(io, a->election.release());
  run_until([&] { return b->started == 1; }, 2s);
  const auto lease =
      decoded<api::Lease>(require(client->get(resources::leases(), Name{space, "leader"})));
  CHECK(lease.holder_identity == "b");
  CHECK(lease.lease_transitions == 1);
  test::run_task(io, b->election.release());
  run_until([&] { return a->ended && b->ended; });
  CHECK(a->lost + b->lost == 0);
  CHECK(decoded<api::Lease>(require(client->get(resources::leases(), Name{space, "leader"})))
            .holder_identity.empty());
}

TEST_CASE_FIXTURE(Live, "live: events are accepted, and counted up as a series") {
  EventRecorder recorder(io.get_executor(), *client, {.instance = "live"}, clock, metrics);
  bool ended = false;
  boost::asio::co_spawn(io, recorder.run(), [&](const std::exception_ptr&) { ended = true; });
  EventNote note;
  note.regarding = {"v1", "Pod", space, "web", "u-1"};
  note.related = ObjectReference{"v1", "Node", "", "node-1", "u-2"};
  note.reason = "Idle";
  note.action = "PowerOff";
  note.note = "powered off";
  for (int i = 0; i < 3; ++i) recorder.record(note);
  recorder.stop();
  run_until([&] { return ended; });
  const std::string shown = metrics.render();
  CHECK_MESSAGE(shown.find("kwatt_events_written_total 3") != std::string::npos, shown);
  auto opened = run(client->open(path_of(resources::events(), space)));
  REQUIRE(opened.has_value());
  const auto body = run((*opened)->read_all(1 << 20, 10s));
  REQUIRE(body.has_value());
  CHECK_MESSAGE(body->find(R"("count":3)") != std::string::npos, *body);
}
