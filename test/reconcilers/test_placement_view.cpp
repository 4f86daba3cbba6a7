#include <doctest/doctest.h>

#include "reconcilers/placement_view.hpp"
#include "test/reconcilers/stores_by_hand.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

api::Node node(const std::string& name, int version = 1) {
  api::Node n;
  n.meta.name = name;
  n.meta.resource_version = std::to_string(version);
  n.allocatable.cpu = Millicores{4000};
  n.allocatable.pods = 110;
  api::Condition& ready = n.conditions.emplace_back();
  ready.type = "Ready";
  ready.status = "True";
  return n;
}

api::Pod pod(const std::string& name, const std::string& on, int version = 1) {
  api::Pod p;
  p.namespace_name = "shop";
  p.name = name;
  p.uid = "uid-" + name;
  p.resource_version = std::to_string(version);
  p.node_name = on;
  auto spec = std::make_shared<api::PodTemplate>();
  spec->requests.cpu = Millicores{1000};
  p.spec = spec;
  return p;
}

// Stores with nodes "a" and "b", and the view subscribed to them as the controller does it.
struct Fixture {
  Fixture() {
    nodes.add_to_replacement(node("a"));
    nodes.add_to_replacement(node("b"));
    nodes.commit_replacement();
    by_hand.machines.commit_replacement();
    by_hand.pods.commit_replacement();
    by_hand.policies.commit_replacement();
    by_hand.budgets.commit_replacement();
    by_hand.claims.commit_replacement();
    by_hand.volumes.commit_replacement();
    by_hand.attachments.commit_replacement();
    by_hand.replica_sets.commit_replacement();
    by_hand.stateful_sets.commit_replacement();
    nodes.subscribe([this](const auto& delta) { view.node_changed(delta); });
    by_hand.machines.subscribe([this](const auto& delta) { view.machine_changed(delta); });
    by_hand.pods.subscribe([this](const auto& delta) { view.pod_changed(delta); });
    view.flush();
  }
  const placement::NodeInfo& of(const std::string& name) {
    view.flush();
    return *view.table()->find(name);
  }

  test::StoresByHand by_hand;
  kube::Store<api::Node>& nodes = by_hand.nodes;
  telemetry::SampleStore samples;
  ManualClock clock{kStart};
  std::vector<std::shared_ptr<const placement::NodeTable>> published;
  PlacementView view{by_hand.stores, samples, clock,
                     [this](auto table) { published.push_back(std::move(table)); }};
};

}  // namespace

TEST_CASE("placement view: a bound pod is counted on its node alone, and the other is shared") {
  Fixture f;
  const auto before = f.view.table();
  f.by_hand.pods.put(pod("web-1", "a"));
  CHECK(f.of("a").requested.cpu == Millicores{1000});
  CHECK(f.of("a").requested.pods == 1);
  CHECK(f.of("a").load == Permille{250});
  CHECK(f.view.table()->find("b") == before->find("b"));
  CHECK(before->find("a")->requested.pods == 0);
  f.by_hand.pods.remove(pod("web-1", "a", 2));
  CHECK(f.of("a").requested.pods == 0);
}

TEST_CASE("placement view: nothing is published while nothing changes") {
  Fixture f;
  const std::size_t tables = f.published.size();
  f.view.flush();
  CHECK(f.published.size() == tables);
}

TEST_CASE("placement view: nodes come and go, states are read from labels and status") {
  Fixture f;
  f.nodes.put(node("c"));
  api::Node slow = node("a", 2);
  slow.meta.labels.set("kwatt.dev/frequency", "low");
  f.nodes.put(slow);
  CHECK(f.of("a").slow);
  CHECK(f.view.table()->size() == 3);
  f.nodes.remove(node("b", 2));
  f.view.flush();
  CHECK(f.view.table()->find("b") == nullptr);
  api::NodePower machine;
  machine.meta.name = "a";
  machine.meta.resource_version = "1";
  machine.status.operation.id = "op";
  machine.status.operation.kind = api::OperationKind::PowerOff;
  machine.spec.model.idle_milliwatts = 50'000;
  machine.spec.model.max_milliwatts = 150'000;
  f.by_hand.machines.put(machine);
  CHECK(f.of("a").leaving);
  CHECK(f.of("a").model.curve.maximum() == watts(150));
}

TEST_CASE("placement view: what is about to be bound counts until the watch shows it") {
  Fixture f;
  const api::Pod pending = pod("web-1", "");
  f.by_hand.pods.put(pending);
  f.view.assume(pending, "a");
  CHECK(f.of("a").requested.pods == 1);
  f.by_hand.pods.put(pod("web-1", "a", 2));
  CHECK(f.of("a").requested.pods == 1);  // once, not twice
  const api::Pod lost = pod("web-2", "");
  f.by_hand.pods.put(lost);
  f.view.assume(lost, "b");
  CHECK(f.of("b").requested.pods == 1);
  f.view.forget(lost.uid);
  CHECK(f.of("b").requested.pods == 0);
}

TEST_CASE("placement view: a measured load counts, with the pods that came after it") {
  Fixture f;
  telemetry::Sample sample;
  sample.at = kStart - seconds{1};
  sample.utilization = sample.busy = Permille{300};
  REQUIRE_FALSE(f.samples.add("a", sample, kStart));
  api::Pod fresh = pod("web-1", "a");
  fresh.scheduled = api::PodScheduled::yes;
  fresh.scheduled_transition = kStart;
  f.by_hand.pods.put(fresh);
  CHECK(f.of("a").load_source == placement::LoadSource::measured);
  CHECK(f.of("a").load == Permille{550});
}

TEST_CASE("placement view: caches that nobody has heard of for long give no table") {
  Fixture f;
  REQUIRE(f.published.back() != nullptr);
  f.clock.advance(minutes{3});
  f.view.flush();
  CHECK(f.published.back() == nullptr);
}
