#include <limits>

#include <doctest/doctest.h>

#include "servers/extender_scores.hpp"

using namespace kwatt::servers;

TEST_CASE("extender scores: totals become a ranking from 0 to 10") {
  using enum Standing;
  struct Case {
    const char* name;
    std::vector<Ranked> nodes;
    std::vector<std::int64_t> want;
  };
  const std::vector<Case> cases = {
      {"one node", {{normal, 7, 0}}, {10}},
      {"the best alone has 10", {{normal, 100, 0}, {normal, 99, 0}, {normal, 0, 0}}, {10, 8, 1}},
      {"in proportion", {{normal, 1000, 0}, {normal, 500, 0}, {normal, 0, 0}}, {10, 5, 1}},
      {"equal totals: the least increase", {{normal, 5, 12}, {normal, 5, 11}}, {9, 10}},
      {"really equal: kube-scheduler decides", {{normal, 5, 1}, {normal, 5, 1}}, {10, 10}},
      {"last resorts have 0 where there is a choice",
       {{last_resort, 900, 0}, {normal, 3, 0}, {last_resort, 800, 0}},
       {0, 10, 0}},
      {"only last resorts: ranked as others", {{last_resort, 9, 0}, {last_resort, 1, 0}}, {10, 1}},
      {"reserved outranks all, and does not flatten the others",
       {{reserved, 100'000, 0}, {normal, 100, 0}, {normal, 50, 0}, {normal, 0, 0}},
       {10, 9, 5, 1}},
      {"reserved with a low total", {{reserved, 1, 0}, {normal, 100, 0}}, {10, 9}},
      {"unknown nodes have 0", {{unknown, 0, 0}, {normal, -5, 0}}, {0, 10}},
      {"nobody is known", {{unknown, 0, 0}, {unknown, 0, 0}}, {0, 0}},
      {"nobody is offered", {}, {}},
      {"totals far apart",
       {{normal, std::numeric_limits<std::int64_t>::max(), 0},
        {normal, std::numeric_limits<std::int64_t>::min(), 0}},
       {10, 1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(extender_scores(c.nodes) == c.want);
  }
}
