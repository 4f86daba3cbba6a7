#include <doctest/doctest.h>

#include "placement/estimator_nodes.hpp"

namespace kwatt::placement {
namespace {

constexpr double kInf = kInfeasible;

EstimatorNode node(std::int64_t free_milli, std::int64_t pods, std::vector<DrawPoint> draw) {
  return {"a", Millicores{free_milli}, pods, std::move(draw)};
}

// WAO's fake: base watts, and so much for each CPU.
std::vector<DrawPoint> line(std::int64_t base, std::int64_t per_core, std::int64_t cores) {
  return {{Millicores{0}, watts(base)}, {Millicores{cores * 1000}, watts(base + per_core * cores)}};
}

TEST_CASE("the increases of a node: as many as its room takes, from its own line of power") {
  struct Case {
    const char* name;
    EstimatorNode node;
    std::int64_t each;
    std::size_t workloads;
    Increases want;  // microwatts
  };
  const Case cases[] = {
      {"a line", node(4'000, 110, line(100, 5, 4)), 500, 3, {2'500'000, 5'000'000, 7'500'000}},
      {"CPU is the limit", node(1'100, 110, line(100, 5, 4)), 500, 3, {2'500'000, 5'000'000}},
      {"pods are", node(4'000, 1, line(100, 5, 4)), 500, 3, {2'500'000}},
      {"nothing asked is nothing more", node(4'000, 2, line(100, 5, 4)), 0, 9, {0, 0}},
      {"a thousandth of a CPU", node(4'000, 110, line(100, 5, 4)), 1, 2, {5'000, 10'000}},
      {"more than is free", node(400, 110, line(100, 5, 4)), 500, 3, {}},
      {"over-committed", node(-400, 110, line(100, 5, 4)), 0, 3, {}},
      {"no pods left", node(4'000, 0, line(100, 5, 4)), 500, 3, {}},
      {"no prediction", node(4'000, 110, {}), 500, 3, {}},
      {"beyond what was predicted",
       node(8'000, 110, line(100, 5, 1)),
       500,
       3,
       {2'500'000, 5'000'000}},
      {"a bend",
       node(4'000, 110,
            {{Millicores{0}, watts(100)},
             {Millicores{1'000}, watts(130)},
             {Millicores{4'000}, watts(160)}}),
       750,
       3,
       {22'500'000, 35'000'000, 42'500'000}},
      {"a third of a watt is rounded to a microwatt",
       node(3, 110, {{Millicores{0}, watts(0)}, {Millicores{3}, watts(1)}}),
       1,
       3,
       {333'333, 666'667, 1'000'000}}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(increases_of(c.node, Millicores{c.each}, c.workloads) == c.want);
  }
}

TEST_CASE("points on a line are left out, bends stay") {
  const std::vector<DrawPoint> points{{Millicores{0}, watts(100)},
                                      {Millicores{500}, watts(110)},
                                      {Millicores{1'000}, watts(120)},
                                      {Millicores{1'500}, watts(121)},
                                      {Millicores{2'000}, watts(122)}};
  CHECK(without_needless(points) == std::vector<DrawPoint>{points[0], points[2], points[4]});
  CHECK(without_needless({points[0]}) == std::vector<DrawPoint>{points[0]});
  CHECK(without_needless({}).empty());
}

TEST_CASE("two machines together: each count has its own best spread, then no more fit") {
  // Two machines whose power rises less and less, as measured servers do.
  const EstimatorNodes nodes{
      {node(2'000, 110,
            {{Millicores{0}, watts(100)},
             {Millicores{500}, watts(106)},
             {Millicores{1'000}, watts(110)},
             {Millicores{1'500}, watts(113)},
             {Millicores{2'000}, watts(111)}}),
       node(500, 110, {{Millicores{0}, watts(50)}, {Millicores{500}, watts(55)}})}};
  CHECK(least_watts(nodes, Millicores{500}, 7) ==
        std::vector<double>{5, 10, 13, 11, 16, kInf, kInf});
}

TEST_CASE("nobody to ask: no workload fits") {
  CHECK(least_watts({}, Millicores{500}, 2) == std::vector<double>{kInf, kInf});
}

}  // namespace
}  // namespace kwatt::placement
