#include <doctest/doctest.h>

#include "reconcilers/effects.hpp"
#include "test/reconcilers/stores_by_hand.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;

namespace {
api::Node node() {
  api::Node n;
  n.meta.name = "n1";
  n.meta.resource_version = "42";
  n.meta.labels = {{"zone", "a"}};
  n.meta.annotations = {{"kwatt.dev/governor", "powersave"}, {"owner", "people"}};
  n.taints = {{"dedicated", "gpu", "NoSchedule", std::nullopt}};
  return n;
}

struct Evicting : test::StubClient {
  Task<Result<void>> evict(kube::Name pod, std::string) override {
    asked.push_back(pod.name);
    co_return Result<void>();
  }
  std::vector<std::string> asked;
};

// One Node at the API server, which nobody else writes.
struct NodeServer : test::StubClient {
  explicit NodeServer(api::Node first) : now(std::move(first)) {}
  Task<Text> patch(const kube::Resource&, kube::Name, PatchType, std::string,
                   std::string subresource, std::string body) override {
    patched.push_back(subresource.empty() ? "metadata" : subresource);
    if (body.find(R"("type":"Suspended")") != std::string::npos) {
      api::Condition suspended;
      suspended.type = "Suspended";
      suspended.status = "True";
      now.conditions.push_back(suspended);
    }
    now.meta.resource_version += "'";
    co_return answer();
  }
  // What decoding needs of it.
  std::string answer() const {
    std::string conditions;
    for (const api::Condition& condition : now.conditions) {
      conditions += R"({"type":")" + condition.type + R"(","status":")" + condition.status + "\"}";
    }
    return R"({"metadata":{"name":"n1","resourceVersion":")" + now.meta.resource_version +
           R"(","labels":{"kwatt.dev/power":"off"}},"status":{"conditions":[)" + conditions + "]}}";
  }
  api::Node now;
  std::vector<std::string> patched;
};

// Caches that know that Node as it was at first.
struct Caches : test::StoresByHand {
  explicit Caches(const api::Node& node) {
    nodes.begin_replace();
    nodes.add_to_replacement(api::Node(node));
    nodes.commit_replacement();
  }
  telemetry::SampleStore samples;
  ManualClock clock{*parse_rfc3339("2026-11-20T12:00:00Z")};
  ClusterView view{stores, samples, clock, {}, [](const std::string&) { return std::string(); }};
};

api::PodMove move(const std::string& name) {
  api::PodMove made;
  made.namespace_name = "default";
  made.pod_name = name;
  made.uid = "uid-" + name;
  return made;
}
}  // namespace

TEST_CASE("node patch: nothing to change gives no request") {
  planner::PatchNode patch;
  CHECK(node_patch_body(node(), patch).empty());
  patch.unschedulable = false;
  patch.set_labels = {{"zone", "a"}};
  patch.remove_annotations = {"kwatt.dev/epp"};
  patch.remove_taints = {"kwatt.dev/candidate"};
  CHECK(node_patch_body(node(), patch).empty());
}

TEST_CASE("node patch: is guarded by the resourceVersion and keeps everybody else's taints") {
  planner::PatchNode patch;
  patch.unschedulable = true;
  patch.add_taints = {{"kwatt.dev/candidate", "", "PreferNoSchedule", std::nullopt}};
  patch.set_labels = {{"kwatt.dev/power", "off"}};
  patch.remove_annotations = {"kwatt.dev/governor"};
  CHECK(node_patch_body(node(), patch) ==
        R"({"metadata":{"annotations":{"kwatt.dev/governor":null},)"
        R"("labels":{"kwatt.dev/power":"off"},"resourceVersion":"42"},)"
        R"("spec":{"taints":[{"key":"dedicated","value":"gpu","effect":"NoSchedule"},)"
        R"({"key":"kwatt.dev/candidate","effect":"PreferNoSchedule"}],"unschedulable":true}})");
}

TEST_CASE("node patch: a taint that is there already is not added twice") {
  api::Node n = node();
  n.taints.push_back({"kwatt.dev/power-off", "", "NoExecute", std::nullopt});
  planner::PatchNode patch;
  patch.add_taints = {{"kwatt.dev/power-off", "", "NoExecute", std::nullopt}};
  CHECK(node_patch_body(n, patch).empty());
}

TEST_CASE("condition Suspended: setting it names time and reason, giving it up owns nothing") {
  const TimePoint now = *parse_rfc3339("2026-11-20T10:00:00Z");
  const std::string set = suspended_condition_body("n1", true, now);
  CHECK(set.find(R"("type":"Suspended")") != std::string::npos);
  CHECK(set.find(R"("lastTransitionTime":"2026-11-20T10:00:00Z")") != std::string::npos);
  const std::string clear = suspended_condition_body("n1", false, now);
  CHECK(clear.find("conditions") == std::string::npos);
  CHECK(clear.find(R"("kind":"Node")") != std::string::npos);
}

TEST_CASE("condition Suspended is applied once, however slow the cache is") {
  NodeServer server(node());
  Caches caches(node());
  boost::asio::io_context io;
  planner::PatchNode patch;
  patch.set_labels = {{"kwatt.dev/power", "off"}};
  patch.suspended_condition = true;
  for (int look = 0; look < 3; ++look) {
    auto done = test::run_task(io, patch_node(server, caches.view, caches.view.node("n1"), patch));
    CHECK(done.has_value());
  }
  CHECK(server.patched == std::vector<std::string>{"metadata", "status"});
}

TEST_CASE("evictions: none is asked for any more once the lease is lost") {
  Evicting client;
  const auto two_may = [&client] { return client.asked.size() < 2; };
  std::vector<api::PodMove> pods{move("a"), move("b"), move("c")};
  boost::asio::io_context io;
  const auto results = test::run_task(io, evict_pods(client, std::move(pods), two_may));
  CHECK(client.asked == std::vector<std::string>{"a", "b"});
  CHECK(results.size() == 2);
}
