#include <limits>
#include <random>

#include <doctest/doctest.h>

#include "placement/flow/assignment.hpp"
#include "placement/flow/network_simplex.hpp"

using namespace kwatt;
using namespace kwatt::placement::flow;

namespace {

struct Shape {
  std::uint32_t jobs, nodes, arcs, units;
  Cost low, high, unplaced, step;
};

Problem random_problem(std::mt19937_64& random, const Shape& shape) {
  const auto between = [&](Cost low, Cost high) {
    return low + static_cast<Cost>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Problem p;
  for (std::uint32_t i = 0; i < shape.jobs; ++i) {
    for (std::uint32_t j = 0; j < shape.nodes; ++j) {
      if (random() % shape.nodes < shape.arcs) {
        p.arcs.push_back({j, between(shape.low, shape.high)});
      }
    }
    p.first.push_back(static_cast<std::uint32_t>(p.arcs.size()));
    p.unplaced.push_back(shape.unplaced);
  }
  for (std::uint32_t j = 0; j < shape.nodes; ++j) {
    Cost price = between(shape.low, shape.high);
    for (std::uint64_t k = random() % (shape.units + 1); k > 0; --k) {
      p.unit.push_back(price);
      price += between(0, shape.step);
    }
    p.unit_first.push_back(static_cast<std::uint32_t>(p.unit.size()));
  }
  return p;
}

// All ways to place job `i` and those after it.
Cost brute_force(const Problem& p, std::uint32_t i, std::vector<std::uint32_t>& load) {
  if (i == p.jobs()) return 0;
  Cost best = p.unplaced[i] + brute_force(p, i + 1, load);
  for (std::uint32_t a = p.first[i]; a < p.first[i + 1]; ++a) {
    const std::uint32_t j = p.arcs[a].node, unit = p.unit_first[j] + load[j];
    if (unit >= p.unit_first[j + 1]) continue;
    ++load[j];
    best = std::min(best, p.arcs[a].cost + p.unit[unit] + brute_force(p, i + 1, load));
    --load[j];
  }
  return best;
}

// With these prices nobody wants to be elsewhere, and no node's price is out of its units'.
bool proves(const Problem& p, const Solution& s) {
  std::vector<std::uint32_t> load(p.nodes());
  for (const std::uint32_t j : s.node) {
    if (j != kUnplaced) ++load[j];
  }
  for (std::uint32_t j = 0; j < p.nodes(); ++j) {
    const std::uint32_t next = p.unit_first[j] + load[j];
    if (load[j] > 0 && p.unit[next - 1] > s.price[j]) return false;
    if (next < p.unit_first[j + 1] && p.unit[next] < s.price[j]) return false;
  }
  for (std::uint32_t i = 0; i < p.jobs(); ++i) {
    Cost paid = p.unplaced[i], least = p.unplaced[i];
    for (std::uint32_t a = p.first[i]; a < p.first[i + 1]; ++a) {
      const Cost total = p.arcs[a].cost + s.price[p.arcs[a].node];
      if (p.arcs[a].node == s.node[i]) paid = total;
      least = std::min(least, total);
    }
    if (paid != least) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("assignment: on tiny problems the cost is the least of all ways") {
  std::mt19937_64 random(11);
  const Shape shapes[] = {{5, 3, 3, 2, 0, 4, 1000, 0},
                          {6, 3, 2, 3, 0, 9, 5, 3},
                          {6, 4, 4, 2, -5, 5, 0, 2},
                          {4, 2, 1, 1, 0, 100, 1000, 50}};
  for (const Shape& shape : shapes) {
    for (int repeat = 0; repeat < 100; ++repeat) {
      const Problem p = random_problem(random, shape);
      const auto found = assign(p);
      REQUIRE(found.has_value());
      std::vector<std::uint32_t> load(p.nodes());
      CHECK(found->cost == brute_force(p, 0, load));
      CHECK(cost_of(p, found->node).value() == found->cost);
      CHECK(proves(p, *found));
    }
  }
}

TEST_CASE("assignment: on larger problems the prices prove it, and LEMON agrees") {
  std::mt19937_64 random(12);
  const Shape shapes[] = {{300, 100, 8, 4, 0, 1000, 1'000'000, 0},
                          {300, 100, 8, 5, 0, 3, 1'000'000, 0},
                          {200, 150, 20, 3, -50, 50, 20, 10},
                          {400, 20, 5, 15, 0, 1'000'000'000, 1'000'000'000'000, 1000}};
  for (const Shape& shape : shapes) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      const Problem p = random_problem(random, shape);
      const auto found = assign(p);
      REQUIRE(found.has_value());
      CHECK(proves(p, *found));
      CHECK(cost_of(p, found->node).value() == found->cost);
      CHECK(min_cost_flow(network_of(p))->cost == found->cost);
    }
  }
}

TEST_CASE("assignment: units are taken from the cheapest on, and a job may make room for another") {
  Problem p;
  p.arcs = {{0, 0}, {1, 5}, {0, 0}};
  p.first = {0, 2, 3};
  p.unplaced = {100, 100};
  p.unit_first = {0, 1, 2};
  p.unit = {1, 1};
  CHECK(assign(p)->node == std::vector<std::uint32_t>{1, 0});
  CHECK(assign(p)->cost == 7);
  p.unplaced[0] = 4;  // now leaving it out is cheaper
  CHECK(assign(p)->node == std::vector<std::uint32_t>{kUnplaced, 0});
}

TEST_CASE("assignment: nothing to place, no arcs and no nodes are fine") {
  CHECK(assign({})->cost == 0);
  Problem p;
  p.first = {0, 0}, p.unplaced = {3};
  CHECK(assign(p)->node == std::vector<std::uint32_t>{kUnplaced});
  CHECK(assign(p)->cost == 3);
}

TEST_CASE("flow: what is no problem is refused, with the place") {
  struct Bad {
    const char* says;
    void (*change)(Problem&);
  };
  const Bad cases[] = {
      {"`first`", [](Problem& p) { p.first.back() = 1; }},
      {"`unit_first`", [](Problem& p) { p.unit.push_back(1); }},
      {"arcs of job 1",
       [](Problem& p) {
         p.first = {0, 3, 2};
       }},
      {"unit prices of node 0 fall",
       [](Problem& p) {
         p.unit = {2, 1};
       }},
      {"leads to node 7", [](Problem& p) { p.arcs[0].node = 7; }},
  };
  for (const Bad& bad : cases) {
    Problem p;
    p.arcs = {{0, 1}, {0, 1}}, p.first = {0, 1, 2}, p.unplaced = {9, 9};
    p.unit = {1, 2}, p.unit_first = {0, 2};
    REQUIRE(assign(p).has_value());
    bad.change(p);
    const auto found = assign(p);
    CAPTURE(bad.says);
    REQUIRE_FALSE(found.has_value());
    CHECK(found.error().code == ErrorCode::invalid_argument);
    CHECK(found.error().message.find(bad.says) != std::string::npos);
  }
  CHECK(min_cost_flow({{1, 0}, {}}).error().message.find("sum to 0") != std::string::npos);
  CHECK(min_cost_flow({{1, -1}, {{0, 2, 1, 1}}}).error().message.find("edge 0") !=
        std::string::npos);
  CHECK(min_cost_flow({{1, -1}, {{0, 1, -1, 1}}}).error().message.find("capacity") !=
        std::string::npos);
  CHECK(min_cost_flow({{1, -1}, {}}).error().code == ErrorCode::not_found);
  CHECK(min_cost_flow({{2, -2}, {{0, 1, 1, 5}, {0, 1, 9, 7}}})->cost == 12);
}
