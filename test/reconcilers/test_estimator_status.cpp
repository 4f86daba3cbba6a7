#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reconcilers/estimator_room.hpp"
#include "reconcilers/estimator_status.hpp"

namespace kwatt::reconcilers {
namespace {

using std::chrono::minutes;
const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");

EstimatorOutcome usable(std::string name, std::int64_t base) {
  EstimatorOutcome outcome;
  outcome.node.name = std::move(name);
  outcome.node.free = Millicores{2'000};
  outcome.node.free_pods = 10;
  outcome.node.draw = {{Millicores{0}, watts(base)}, {Millicores{4'000}, watts(base + 40)}};
  return outcome;
}
EstimatorOutcome unusable(std::string name, std::string reason) {
  EstimatorOutcome outcome;
  outcome.node.name = std::move(name);
  outcome.reason = std::move(reason);
  outcome.message = "a sentence";
  return outcome;
}

const api::Condition& condition(const api::EstimatorStatus& status, const char* type) {
  const api::Condition* found = api::find_condition(status.conditions, type);
  REQUIRE(found != nullptr);
  return *found;
}

TEST_CASE("an estimator's status: those that cannot be used first, watts of the others") {
  api::Estimator estimator;
  estimator.meta.generation = 3;
  EstimatorResult result;
  result.nodes = {usable("a", 100), unusable("b", "Tainted"), usable("c", 50)};
  const api::EstimatorStatus status = estimator_status(estimator, result, kNow);
  CHECK(status.nodes_total == 3);
  CHECK(status.nodes_usable == 2);
  CHECK(status.watts == 150);
  REQUIRE(status.nodes.size() == 3);
  CHECK(status.nodes[0].node_name == "b");
  CHECK(status.nodes[0].reason == "Tainted");
  CHECK(status.nodes[1].node_name == "a");
  CHECK(status.nodes[1].milliwatts == 100'000);
  CHECK(status.nodes[1].full_milliwatts == 120'000);
  CHECK(condition(status, "Ready").status == "True");
  CHECK(condition(status, "Accepted").status == "True");
  CHECK(condition(status, "PredictorsAvailable").status == "True");
  CHECK(condition(status, "Ready").observed_generation == 3);
}

TEST_CASE("an estimator's status is bounded, its counts are not") {
  EstimatorResult result;
  for (int i = 0; i < 250; ++i) result.nodes.push_back(usable(fmt::format("n{:03}", i), 10));
  result.nodes.push_back(unusable("z", "NodeNotReady"));
  const api::EstimatorStatus status = estimator_status({}, result, kNow);
  CHECK(status.nodes.size() == 100);
  CHECK(status.nodes[0].node_name == "z");
  CHECK(status.nodes_total == 251);
  CHECK(status.watts == 2'500);
}

TEST_CASE("why an estimator is not ready") {
  struct Case {
    const char* name;
    EstimatorResult result;
    const char *reason, *accepted;
  };
  EstimatorResult invalid;
  invalid.problems = {"spec.x: is wrong"};
  invalid.problem_reason = "Invalid";
  EstimatorResult none_usable;
  none_usable.nodes = {unusable("a", "NoPredictor")};
  const Case cases[] = {{"no nodes", {}, "NoNodes", "True"},
                        {"not accepted", invalid, "NotAccepted", "False"},
                        {"none usable", none_usable, "NoUsableNodes", "True"}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto status = estimator_status({}, c.result, kNow);
    CHECK(condition(status, "Ready").status == "False");
    CHECK(condition(status, "Ready").reason == c.reason);
    CHECK(condition(status, "Accepted").status == c.accepted);
  }
}

TEST_CASE("a failing predictor is told even while its last prediction counts") {
  EstimatorResult result;
  result.nodes = {usable("a", 100), usable("b", 100)};
  result.nodes[1].predictor_failed = true;
  result.nodes[1].predictor_error = "MLServer answered NaN";
  const auto status = estimator_status({}, result, kNow);
  CHECK(status.nodes_usable == 2);
  CHECK(condition(status, "PredictorsAvailable").status == "False");
  CHECK(condition(status, "PredictorsAvailable").message ==
        "1 of 2 nodes without a new prediction, for example b: MLServer answered NaN");
}

TEST_CASE("a status is written at once when something turned, else every few minutes") {
  EstimatorResult result;
  result.nodes = {usable("a", 100)};
  const auto written = estimator_status({}, result, kNow);
  api::Estimator standing;
  standing.status = written;
  CHECK_FALSE(
      worth_writing(written, estimator_status(standing, result, kNow + minutes{60}), minutes{5}));
  result.nodes[0] = usable("a", 101);
  CHECK_FALSE(
      worth_writing(written, estimator_status(standing, result, kNow + minutes{4}), minutes{5}));
  CHECK(worth_writing(written, estimator_status(standing, result, kNow + minutes{5}), minutes{5}));
  result.nodes[0] = unusable("a", "Tainted");
  CHECK(worth_writing(written, estimator_status(standing, result, kNow + minutes{1}), minutes{5}));
}

TEST_CASE("the room of a node: what is requested counts, and who keeps workloads away") {
  api::Node node;
  node.allocatable.cpu = Millicores{4'000};
  node.allocatable.pods = 3;
  node.conditions.push_back({"Ready", "True", "", "", 0, std::nullopt});
  const auto pod = [](std::int64_t cpu, api::PodPhase phase) {
    auto spec = std::make_shared<api::PodTemplate>();
    spec->requests.cpu = Millicores{cpu};
    auto one = std::make_shared<api::Pod>();
    one->spec = std::move(spec);
    one->phase = phase;
    return std::shared_ptr<const api::Pod>(std::move(one));
  };
  const EstimatorRoom room = estimator_room(
      node, {pod(1'500, api::PodPhase::running), pod(2'000, api::PodPhase::succeeded)});
  CHECK(room.free == Millicores{2'500});
  CHECK(room.free_pods == 2);
  CHECK(room.reason.empty());
  CHECK(estimator_room(node, {pod(9'000, api::PodPhase::running)}).free == Millicores{0});
  CHECK(processors_of(node) == 4);

  api::Node cordoned = node, unready = node, tainted = node, soft = node;
  cordoned.unschedulable = true;
  unready.conditions[0].status = "Unknown";
  tainted.taints.push_back({"node-role.kubernetes.io/control-plane", "", "NoSchedule", {}});
  soft.taints.push_back({"kwatt.dev/candidate", "", "PreferNoSchedule", {}});
  CHECK(estimator_room(cordoned, {}).reason == "Unschedulable");
  CHECK(estimator_room(unready, {}).reason == "NodeNotReady");
  CHECK(estimator_room(tainted, {}).message ==
        "the node has the taint node-role.kubernetes.io/control-plane:NoSchedule");
  CHECK(estimator_room(soft, {}).reason.empty());
}

}  // namespace
}  // namespace kwatt::reconcilers
