#include <algorithm>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "placement/estimate.hpp"

namespace kwatt::placement {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Every way to spread the workloads, one after the other.
void spread(std::span<const Increases> nodes, std::size_t used, double cost,
            std::vector<double>& best) {
  if (nodes.empty()) {
    if (used > 0) best[used - 1] = std::min(best[used - 1], cost);
    return;
  }
  spread(nodes.subspan(1), used, cost, best);
  const Increases& node = nodes.front();
  for (std::size_t count = 1; count <= node.size() && used + count <= best.size(); ++count) {
    if (std::isfinite(node[count - 1])) {
      spread(nodes.subspan(1), used + count, cost + node[count - 1], best);
    }
  }
}
std::vector<double> by_brute_force(std::span<const Increases> nodes, std::size_t workloads) {
  std::vector<double> best(workloads, kInfeasible);
  spread(nodes, 0, 0, best);
  return best;
}

enum class Shape { convex, concave, any, falling, with_gaps };

Increases random_node(std::mt19937_64& random, std::size_t longest) {
  const auto shape = static_cast<Shape>(random() % 5);
  const std::size_t size = random() % (longest + 1);
  std::vector<double> steps(size);
  for (double& step : steps) step = static_cast<double>(random() % 12);
  if (shape == Shape::convex) std::sort(steps.begin(), steps.end());
  if (shape == Shape::concave) std::sort(steps.rbegin(), steps.rend());
  Increases node;
  double sum = 0;
  for (const double step : steps) {
    sum += shape == Shape::falling ? step - 6 : step;
    node.push_back(shape == Shape::with_gaps && random() % 3 == 0 ? kNan : sum);
  }
  return node;
}

TEST_CASE("the estimate: equal to brute force on 1,000 random small cases") {
  std::mt19937_64 random(5656);
  std::size_t infeasible = 0, feasible = 0;
  for (int round = 0; round < 1'000; ++round) {
    const std::size_t workloads = 1 + random() % 7;
    std::vector<Increases> nodes(random() % 6);
    for (Increases& node : nodes) node = random_node(random, 8);
    const auto got = least_increases(nodes, workloads);
    const auto want = by_brute_force(nodes, workloads);
    CAPTURE(round);
    REQUIRE(got == want);
    for (const double one : want) ++(std::isfinite(one) ? feasible : infeasible);
  }
  // The cases are of both kinds.
  CHECK(feasible > 1'000);
  CHECK(infeasible > 500);
}

TEST_CASE("the estimate: more nodes than workloads, so that most are left out, and still exact") {
  // Far too many for brute force: the plain convolution over every node, which leaves nothing out.
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t workloads = 1 + random() % 12;
    std::vector<Increases> nodes(40);
    for (Increases& node : nodes) node = random_node(random, 14);
    std::vector<double> plain(workloads + 1, kInfeasible);
    plain[0] = 0;
    for (const Increases& node : nodes) {
      std::vector<double> next = plain;
      for (std::size_t m = 1; m <= workloads; ++m) {
        for (std::size_t count = 1; count <= std::min(m, node.size()); ++count) {
          if (std::isfinite(node[count - 1])) {
            next[m] = std::min(next[m], plain[m - count] + node[count - 1]);
          }
        }
      }
      plain = next;
    }
    plain.erase(plain.begin());
    CAPTURE(round);
    REQUIRE(least_increases(nodes, workloads) == plain);
  }
}

TEST_CASE("the estimate: what each case comes to") {
  struct Case {
    const char* name;
    std::vector<Increases> nodes;
    std::size_t workloads;
    std::vector<double> want;
  };
  const double inf = kInfeasible;
  const Case cases[] = {
      {"no nodes: nothing fits", {}, 3, {inf, inf, inf}},
      {"no workloads: nothing is asked", {{1, 2}}, 0, {}},
      {"one node that grows dearer", {{1, 3, 6}}, 4, {1, 3, 6, inf}},
      {"two alike share, where that is cheaper", {{1, 5}, {1, 5}}, 4, {1, 2, 6, 10}},
      {"packing beats spreading on a curve that flattens", {{5, 6, 7}, {4, 8, 12}}, 3, {4, 6, 7}},
      {"the best for one is not part of the best for two", {{3}, {4, 5}}, 3, {3, 5, 8}},
      {"a node that cannot take one may take two", {{inf, 4}, {9}}, 3, {9, 4, 13}},
      {"NaN is no offer", {{kNan, kNan}, {2}}, 2, {2, inf}},
      {"a machine that draws less when it has more to do", {{-2, -3}}, 3, {-2, -3, inf}},
      {"nothing more is drawn", {{0, 0, 0}}, 2, {0, 0}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(least_increases(c.nodes, c.workloads) == c.want);
  }
}

}  // namespace
}  // namespace kwatt::placement
