// What guards need from outside the planner: room that buffers ask for, who else owns a node, and
// which decisions are news.
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "planner/plan.hpp"
#include "reconcilers/buffers.hpp"
#include "reconcilers/cluster_view.hpp"
#include "reconcilers/decisions.hpp"
#include "test/reconcilers/stores_by_hand.hpp"

TEST_SUITE_BEGIN("guards");

namespace kwatt::reconcilers {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a decision is news when its words differ, not its numbers") {
  struct Case {
    const char *a, *b;
    bool same;
  };
  const Case cases[] = {
      {"idle for 31s of 10m", "idle for 1m2s of 10m", true},
      {"12.3 % utilized, below 30 %", "9.8 % utilized, below 30 %", true},
      {"draws 250.1 W of 406 W", "draws 249 W of 406 W", true},
      {"pod web/a-1 fits nowhere else", "pod web/a-2 fits nowhere else", false},
      {"held on until 2026-11-20T18:00:00Z", "held on until 2026-11-21T18:00:00Z", false},
      {"1 workload pod", "2 workload pods", false},
      {"", "", true},
      {"", "no policy selects the node", false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.a);
    api::NodeDecision a, b;
    a.reason = b.reason = "InUse";
    a.message = c.a;
    b.message = c.b;
    CHECK(says_the_same(a, b) == c.same);
    b.reason = "Idle";
    CHECK_FALSE(says_the_same(a, b));
  }
}

template <class T>
T decoded(std::string_view json) {
  T object;
  const auto done = api::decode(json, object);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  return object;
}

constexpr const char* kTemplate = R"({
  "apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"shape","namespace":"shop","resourceVersion":"1"},
  "template":{"metadata":{"labels":{"app":"web"}},"spec":{"nodeSelector":{"disk":"ssd"},"containers":[
    {"name":"a","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]}}})";

TEST_CASE("a CapacityBuffer counts as the pods it asks for") {
  struct Case {
    const char* name;
    const char* spec;
    const char* status;
    std::int64_t pods;
  };
  const Case cases[] = {
      {"replicas", R"({"podTemplateRef":{"name":"shape"},"replicas":3})", "{}", 3},
      {"status counts before spec", R"({"podTemplateRef":{"name":"shape"},"replicas":3})",
       R"({"podTemplateRef":{"name":"made"},"replicas":5})", 5},
      {"limits lower it", R"({"replicas":10,"limits":{"cpu":"4","memory":"64Gi"}})", "{}", 2},
      {"limits alone", R"({"limits":{"memory":"4Gi"}})", "{}", 4},
      {"a limit of what is not asked for", R"({"replicas":2,"limits":{"example.com/gpu":"1"}})",
       "{}", 2},
      {"neither", R"({"scalableRef":{"kind":"Deployment","name":"x"},"percentage":20})", "{}", 0},
      {"none", R"({"replicas":0})", "{}", 0},
      {"the default strategy",
       R"({"replicas":1,"provisioningStrategy":"buffer.x-k8s.io/active-capacity"})", "{}", 1},
      {"a cloud's own", R"({"replicas":1,"provisioningStrategy":"buffer.gke.io/standby"})", "{}",
       0},
      {"endless", R"({"replicas":2000000})", "{}", kMostPerBuffer},
  };
  const auto shape = decoded<api::PodTemplateObject>(kTemplate);
  CHECK(shape.spec->requests.cpu == Millicores{1500});
  CHECK(shape.spec->node_selector.get("disk") == "ssd");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto buffer = decoded<api::CapacityBuffer>(
        std::string(R"({"metadata":{"name":"spare","namespace":"shop"},"spec":)") + c.spec +
        R"(,"status":)" + c.status + "}");
    const auto pods = buffer_pods(buffer, shape.spec);
    CHECK(static_cast<std::int64_t>(pods.size()) == c.pods);
    for (const auto& pod : pods) {
      CHECK(pod->workload());
      CHECK(pod->scheduled == api::PodScheduled::unschedulable);
      CHECK(pod->annotations.get(planner::names::kBuffer) == "shop/spare");
      CHECK(pod->spec->priority < 0);
    }
  }
}

template <class T>
void fill(kube::Store<T>& store, std::vector<T> objects) {
  store.begin_replace();
  for (T& object : objects) store.add_to_replacement(std::move(object));
  store.commit_replacement();
}

// The caches of a controller that knows one node.
struct Caches : test::StoresByHand {
  kube::Store<api::CapacityBuffer> buffers{"cb"};
  kube::Store<api::PodTemplateObject> templates{"pt"};
  kube::Store<api::NodeHealthCheck> checks{"nhc"};
  kube::Store<api::Lease> leases{"l"};
  bool known = true, has_buffers = true, has_checks = true;
  OtherStores others{buffers, templates, checks, leases, known, has_buffers, has_checks};
  telemetry::SampleStore samples;
  ManualClock clock{*parse_rfc3339("2026-11-20T12:00:00Z")};
  ClusterView view{stores, samples, clock, {}, [](const std::string&) { return std::string(); }};

  Caches() {
    fill(nodes,
         {decoded<api::Node>(
             R"({"metadata":{"name":"n1","resourceVersion":"1","labels":{"role":"worker"}}})")});
    fill(policies, {});
    fill(machines, {});
    fill(pods, {});
    fill(budgets, {});
    fill(claims, {});
    fill(volumes, {});
    fill(attachments, {});
    fill(replica_sets, {});
    fill(stateful_sets, {});
    fill(buffers, {});
    fill(templates, {});
    fill(checks, {});
    fill(leases, {});
    view.watch(others);
  }
};

TEST_CASE(
    "what other projects have is listed before anything is decided, but only if it is there") {
  Caches caches;
  CHECK(caches.view.sync().synced);
  caches.known = false;
  CHECK_FALSE(caches.view.sync().synced);
  caches.known = true;
  kube::Store<api::CapacityBuffer> unlisted{"cb"};
  OtherStores others{unlisted,     caches.templates,   caches.checks,    caches.leases,
                     caches.known, caches.has_buffers, caches.has_checks};
  caches.view.watch(others);
  CHECK_FALSE(caches.view.sync().synced);
  caches.has_buffers = false;
  CHECK(caches.view.sync().synced);
}

TEST_CASE("the room of buffers joins the pods that have no node") {
  Caches caches;
  fill(caches.templates, {decoded<api::PodTemplateObject>(kTemplate)});
  fill(caches.buffers,
       {decoded<api::CapacityBuffer>(
            R"({"metadata":{"name":"spare","namespace":"shop","resourceVersion":"1"},)"
            R"("spec":{"podTemplateRef":{"name":"shape"},"replicas":2}})"),
        decoded<api::CapacityBuffer>(
            R"({"metadata":{"name":"lost","namespace":"shop","resourceVersion":"1"},)"
            R"("spec":{"podTemplateRef":{"name":"nowhere"},"replicas":2}})")});
  const auto snapshot = caches.view.snapshot();
  REQUIRE(snapshot->unbound.size() == 2);
  CHECK(snapshot->unbound[0]->key() == "shop/spare-buffer-0");
  caches.has_buffers = false;  // the CRD is gone
  CHECK(caches.view.snapshot()->unbound.empty());
}

TEST_CASE(
    "a maintenance lease holds a node as long as it lasts, a health check as long as it selects") {
  struct Case {
    const char* name;
    const char* lease;  // its spec
    bool held;
  };
  const Case cases[] = {
      {"in force",
       R"({"holderIdentity":"nmo","leaseDurationSeconds":3600,"renewTime":"2026-11-20T11:30:00.000000Z"})",
       true},
      {"over",
       R"({"holderIdentity":"nmo","leaseDurationSeconds":600,"renewTime":"2026-11-20T11:30:00.000000Z"})",
       false},
      {"given back", R"({"holderIdentity":"","leaseDurationSeconds":3600})", false},
      {"without a time", R"({"holderIdentity":"nmo","leaseDurationSeconds":3600})", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Caches caches;
    fill(
        caches.leases,
        {decoded<api::Lease>(
            std::string(
                R"({"metadata":{"name":"node-n1","namespace":"medik8s-leases","resourceVersion":"1"},"spec":)") +
            c.lease + "}")});
    CHECK(caches.view.node_view("n1")->maintenance == (c.held ? "nmo" : ""));
  }
  Caches caches;
  fill(
      caches.checks,
      {decoded<api::NodeHealthCheck>(
           R"({"metadata":{"name":"masters","resourceVersion":"1"},"spec":{"selector":{"matchLabels":{"role":"master"}}}})"),
       decoded<api::NodeHealthCheck>(
           R"({"metadata":{"name":"workers","resourceVersion":"1"},"spec":{"selector":{"matchLabels":{"role":"worker"}}}})")});
  CHECK(caches.view.node_view("n1")->health_check == "workers");
  caches.has_checks = false;
  CHECK(caches.view.node_view("n1")->health_check.empty());
}

}  // namespace
}  // namespace kwatt::reconcilers

TEST_SUITE_END();
