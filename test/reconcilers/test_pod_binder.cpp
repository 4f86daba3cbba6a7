// Bind: a slow node is asked back first, and the pod is bound in any case.
#include <doctest/doctest.h>

#include "planner/arrival.hpp"
#include "planner/plan.hpp"
#include "planner/request.hpp"
#include "reconcilers/pod_binder.hpp"
#include "test/reconcilers/stores_by_hand.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;

namespace {

api::Node node(bool slow, bool by_us, int version) {
  api::Node n;
  n.meta.name = "n1";
  n.meta.resource_version = std::to_string(version);
  if (slow) n.meta.labels.set("kwatt.dev/frequency", "low");
  planner::RequestNote note;
  note.id = "op";
  note.policy = "p";
  note.keys = {std::string(planner::names::kGovernor)};
  if (by_us) n.meta.annotations.set("kwatt.dev/request", planner::format_request(note));
  return n;
}

struct Client final : test::StubClient {
  kube::Task<Result<std::string>> patch(const kube::Resource& resource, kube::Name name, PatchType,
                                        std::string, std::string, std::string body) override {
    calls.push_back("patch " + resource.plural + "/" + name.name);
    patched = std::move(body);
    if (restores) nodes->put(node(false, true, 2));
    if (refuses) co_return fail(ErrorCode::forbidden, "no");
    co_return std::string("{}");
  }
  kube::Task<Result<void>> bind(kube::Name pod, std::string uid, std::string to) override {
    calls.push_back("bind " + pod.name + " " + uid + " " + to);
    co_return answer;
  }
  kube::Store<api::Node>* nodes = nullptr;
  bool restores = true, refuses = false;
  std::vector<std::string> calls;
  std::string patched;
  Result<void> answer{};
};

struct Fixture {
  explicit Fixture(const api::Node& present) {
    client.nodes = &by_hand.nodes;
    by_hand.nodes.add_to_replacement(present);
    by_hand.nodes.commit_replacement();
    by_hand.pods.commit_replacement();
  }
  Result<void> bind() {
    kube::Name pod{"shop", "web-1"};
    return test::run_task(io, binder.bind(pod, "u-1", "n1"));
  }
  boost::asio::io_context io;
  test::StoresByHand by_hand;
  telemetry::SampleStore samples;
  SystemClock clock;
  Metrics metrics;
  Client client;
  PlacementView view{by_hand.stores, samples, clock, [](auto) {}};
  PodBinder binder{client, by_hand.stores, view, clock, metrics};
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("pod binder: a node at full speed is bound to at once") {
  Fixture f{node(false, true, 1)};
  CHECK(f.bind().has_value());
  CHECK(f.client.calls == Calls{"bind web-1 u-1 n1"});
}

TEST_CASE("pod binder: a slow node is asked back first") {
  Fixture f{node(true, true, 1)};
  CHECK(f.bind().has_value());
  CHECK(f.client.calls == Calls{"patch nodes/n1", "bind web-1 u-1 n1"});
  CHECK(f.client.patched.find("kwatt.dev/restore") != std::string::npos);
  CHECK(f.client.patched.find("shop/web-1") != std::string::npos);
  CHECK(f.metrics.render().find(R"(kwatt_extender_restores_total{result="restored"} 1)") !=
        std::string::npos);
}

TEST_CASE("pod binder: bound in any case, restored or not") {
  Fixture late{node(true, true, 1)};
  late.client.restores = false;
  const auto started = std::chrono::steady_clock::now();
  CHECK(late.bind().has_value());
  CHECK(std::chrono::steady_clock::now() - started >= kRestorePatience);
  CHECK(late.client.calls.back() == "bind web-1 u-1 n1");
  Fixture refused{node(true, true, 1)};
  refused.client.refuses = true;
  CHECK(refused.bind().has_value());
  CHECK(refused.client.calls.back() == "bind web-1 u-1 n1");
}

TEST_CASE("pod binder: what others slowed down, and caps of a budget, are not asked back") {
  CHECK_FALSE(can_be_restored(node(true, false, 1)));
  CHECK(can_be_restored(node(true, true, 1)));
  api::Node capped = node(false, true, 1);
  capped.meta.labels.set("kwatt.dev/capped", "true");
  CHECK(can_be_restored(capped));
  planner::RequestNote note = planner::request_on(capped);
  note.keep_cap = true;
  capped.meta.annotations.set("kwatt.dev/request", planner::format_request(note));
  CHECK_FALSE(can_be_restored(capped));
}

TEST_CASE("pod binder: a refused binding is told, and not counted on the node") {
  Fixture f{node(false, true, 1)};
  f.client.answer = fail(ErrorCode::conflict, "it is bound already");
  const auto bound = f.bind();
  REQUIRE_FALSE(bound.has_value());
  CHECK(bound.error().code == ErrorCode::conflict);
}
