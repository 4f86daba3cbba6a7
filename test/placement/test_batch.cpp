#include <algorithm>

#include <doctest/doctest.h>

#include "nodes.hpp"
#include "placement/batch.hpp"

using namespace kwatt;
using namespace kwatt::placement;

namespace {

// A curve that is cheapest per CPU at 60 %: beyond, a tenth costs four times as much.
NodeInfo bent(std::string name) {
  NodeInfo node = make_node(std::move(name));
  for (std::size_t i = 7; i < 11; ++i) {
    node.model.curve.points[i] = node.model.curve.points[i - 1] + watts(40);
  }
  return node;
}

std::vector<std::int64_t> loads(const BatchPlan& plan, const std::vector<PodInfo>& pods,
                                std::size_t nodes) {
  std::vector<std::int64_t> sum(nodes);
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (plan.node[p]) sum[*plan.node[p]] += pods[p].expected.count();
  }
  return sum;
}

}  // namespace

TEST_CASE("nodes that are awake are loaded to where their curves bend, not to the brim") {
  const std::vector<NodeInfo> nodes = {bent("a"), bent("b")};
  const std::vector<PodInfo> pods(12, make_pod(1000));
  const auto plan = place_batch(pods, pointers(nodes));
  REQUIRE(plan.has_value());
  CHECK(loads(*plan, pods, 2) == std::vector<std::int64_t>{6'000, 6'000});
  CHECK(plan->increase == watts(120));
}

TEST_CASE("a node is woken only if that is cheaper than a dear stretch of another") {
  std::vector<NodeInfo> nodes = {bent("a"), bent("b")};
  nodes[1].awake = false;
  const auto loaded = [&](std::size_t count) {
    const std::vector<PodInfo> pods(count, make_pod(1000));
    return loads(*place_batch(pods, pointers(nodes)), pods, 2);
  };
  CHECK(loaded(7) == std::vector<std::int64_t>{7'000, 0});       // 40 W, waking is 50 W and more
  CHECK(loaded(10) == std::vector<std::int64_t>{6'000, 4'000});  // 160 W, waking is 90 W with load
  nodes[1].model.boot_energy = Millijoules{600'000'000};         // a kilowatt for ten minutes
  CHECK(loaded(10) == std::vector<std::int64_t>{10'000, 0});
}

TEST_CASE("every amount counts, and what fits nowhere is left out") {
  std::vector<NodeInfo> nodes = {make_node("a"), make_node("b")};
  nodes[0].allocatable.pods = 2;
  nodes[1].requested.memory = Bytes{38ll << 30};
  const std::vector<PodInfo> pods(6, make_pod(100));
  const auto plan = place_batch(pods, pointers(nodes));
  CHECK(loads(*plan, pods, 2) == std::vector<std::int64_t>{200, 200});
  CHECK(std::count(plan->node.begin(), plan->node.end(), std::nullopt) == 2);
}

TEST_CASE("the filters of a profile are asked, and their error is the answer") {
  std::vector<NodeInfo> nodes = {make_node("a"), make_node("b")};
  nodes[0].leaving = true;
  const auto framework = *node_framework({{"Leaving", 1}, {"Taints", 1}});
  BatchSettings settings;
  settings.filters = &framework;
  const std::vector<PodInfo> pods(3, make_pod(1000));
  CHECK(loads(*place_batch(pods, pointers(nodes), settings), pods, 2) ==
        std::vector<std::int64_t>{0, 3'000});
}

TEST_CASE("the same batch is placed in the same way, and an empty one costs nothing") {
  std::vector<NodeInfo> nodes;
  for (int i = 0; i < 9; ++i) {
    nodes.push_back(i % 2 == 0 ? bent("n" + std::to_string(i))
                               : make_node("n" + std::to_string(i)));
    nodes.back().awake = i % 3 != 0;
  }
  std::vector<PodInfo> pods;
  for (int i = 0; i < 40; ++i) pods.push_back(make_pod(250 * (1 + i % 5), 1 + i % 3));
  const auto first = place_batch(pods, pointers(nodes));
  const auto second = place_batch(pods, pointers(nodes));
  CHECK(first->node == second->node);
  CHECK(first->increase == increase_of(pods, pointers(nodes), first->node, {}));
  CHECK(place_batch({}, pointers(nodes))->increase == Milliwatts{0});
  CHECK(place_batch(pods, {})->node == std::vector<std::optional<std::size_t>>(40));
}

TEST_CASE("MostAllocated fills one node, LeastAllocated spreads, one by one follows the curve") {
  const std::vector<NodeInfo> nodes = {bent("a"), bent("b")};
  const std::vector<PodInfo> pods(8, make_pod(1000));
  const auto all = pointers(nodes);
  CHECK(loads(*place_by_allocation(pods, all, Allocated::most), pods, 2) ==
        std::vector<std::int64_t>{8'000, 0});
  CHECK(loads(*place_by_allocation(pods, all, Allocated::least), pods, 2) ==
        std::vector<std::int64_t>{4'000, 4'000});
  CHECK(loads(*place_one_by_one(pods, all), pods, 2) == std::vector<std::int64_t>{6'000, 2'000});
}
