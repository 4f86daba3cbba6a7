#pragma once
// Jobs to nodes at the least total cost: the min-cost flow source → jobs → nodes → sink in which
// each job is one unit and each node takes a unit at a time, every one at least as dear as the one
// before (convex). Solved exactly by successive shortest paths on node prices alone, which on this
// shape of network is faster than a general solver (network_simplex.hpp; bench/sim_flow.cpp).
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace kwatt::placement::flow {

// Any integer unit; sums must stay below 2^62.
using Cost = std::int64_t;

struct Arc {
  std::uint32_t node = 0;
  Cost cost = 0;
};

struct Problem {
  // Arcs of job i: arcs[first[i]] up to, without it, arcs[first[i + 1]]. At most one to a node.
  std::vector<std::uint32_t> first{0};
  std::vector<Arc> arcs;
  // What it costs to leave a job out, one for each job. Great values place as many as can be.
  std::vector<Cost> unplaced;
  // Prices of a node's units: unit[k] of node j for k from unit_first[j] on; as many as it takes
  // jobs; never falling.
  std::vector<std::uint32_t> unit_first{0};
  std::vector<Cost> unit;

  std::size_t jobs() const { return unplaced.size(); }
  std::size_t nodes() const { return unit_first.size() - 1; }
};

inline constexpr std::uint32_t kUnplaced = 0xFFFFFFFF;

struct Solution {
  std::vector<std::uint32_t> node;  // by job; kUnplaced: left out
  Cost cost = 0;
  // A proof: with these prices every job has its best place, and no node's next unit is cheaper
  // than its price nor a taken one dearer.
  std::vector<Cost> price;  // by node
};

// Time about jobs × arcs where nodes are not contended, more where many jobs want the same ones.
// Ties by position: deterministic. Errors: invalid_argument naming the first fault of the problem.
Result<Solution> assign(const Problem& problem);

// What an assignment costs; a node filled beyond its units or an arc that is not there is an error.
Result<Cost> cost_of(const Problem& problem, std::span<const std::uint32_t> node);

}  // namespace kwatt::placement::flow
