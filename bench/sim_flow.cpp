// Min-cost flow at 10,000 jobs × 5,000 nodes with 20 arcs a job: how long our solver and LEMON's
// network simplex take on the same instances, and that they agree. Prints JSON; CPU time of one
// core.
#include <algorithm>
#include <ctime>
#include <random>

#include <fmt/format.h>

#include "placement/flow/assignment.hpp"
#include "placement/flow/network_simplex.hpp"

namespace {

using namespace kwatt::placement::flow;

// `slots` units a node; costs of an arc 1..1000, or, related, what job and node have in common, as
// in ECSched: sizes of a job times sizes of a node. Convex: each unit of a node dearer than the
// last.
Problem instance(std::uint64_t seed, std::uint32_t jobs, std::uint32_t nodes, std::uint32_t arcs,
                 std::uint32_t slots, bool related, bool convex) {
  std::mt19937_64 random(seed);
  Problem p;
  std::vector<std::uint64_t> cpu(nodes), memory(nodes);
  for (std::uint32_t j = 0; j < nodes; ++j)
    cpu[j] = 1 + random() % 100, memory[j] = 1 + random() % 100;
  std::vector<std::uint32_t> stamp(nodes, 0);
  for (std::uint32_t i = 0; i < jobs; ++i) {
    const std::uint64_t c = 1 + random() % 30, m = 1 + random() % 30;
    for (std::uint32_t k = 0; k < arcs;) {
      const auto j = static_cast<std::uint32_t>(random() % nodes);
      if (stamp[j] == i + 1) continue;
      stamp[j] = i + 1, ++k;
      const std::uint64_t cost = related ? c * cpu[j] + m * memory[j] : 1 + random() % 1000;
      p.arcs.push_back({j, static_cast<Cost>(cost)});
    }
    p.first.push_back(static_cast<std::uint32_t>(p.arcs.size()));
    p.unplaced.push_back(100'000);
  }
  for (std::uint32_t j = 0; j < nodes; ++j) {
    Cost price = 0;
    for (std::uint32_t k = 0; k < slots; ++k) {
      if (convex) price += static_cast<Cost>(random() % 200);
      p.unit.push_back(price);
    }
    p.unit_first.push_back(static_cast<std::uint32_t>(p.unit.size()));
  }
  return p;
}

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  struct Case {
    const char* name;
    std::uint32_t slots;
    bool related, convex;
  };
  const Case cases[] = {{"tight", 2, false, false},
                        {"loose", 4, false, false},
                        {"related", 4, true, false},
                        {"convex", 4, true, true}};
  fmt::print("[");
  for (const Case& c : cases) {
    std::vector<double> ours, lemon;
    bool equal = true;
    for (std::uint64_t seed = 1; seed <= 7; ++seed) {
      const Problem p = instance(seed, 10'000, 5'000, 20, c.slots, c.related, c.convex);
      double start = cpu_now();
      const auto found = assign(p);
      ours.push_back(cpu_now() - start);
      start = cpu_now();
      const auto flow = min_cost_flow(network_of(p));
      lemon.push_back(cpu_now() - start);
      equal = equal && found && flow && found->cost == flow->cost &&
              cost_of(p, found->node).value() == found->cost;
    }
    fmt::print(
        R"({}{{"case":"{}","milliseconds":{:.2f},"worst":{:.2f},"lemon":{:.2f},"equal":{}}})",
        &c == cases ? "" : ",", c.name, median(ours) * 1e3,
        *std::max_element(ours.begin(), ours.end()) * 1e3, median(lemon) * 1e3, equal);
  }
  fmt::print("]\n");
}
