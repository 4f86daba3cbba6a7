#pragma once
// Min-cost flow on any network, by LEMON's network simplex (P. Kovács, "Minimum-cost flow
// algorithms: an experimental evaluation", OMS 30(1), 2015). The general case; assignment.hpp is
// faster where jobs go to nodes. LEMON is included in network_simplex.cpp alone.
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "placement/flow/assignment.hpp"

namespace kwatt::placement::flow {

struct Edge {
  std::uint32_t from = 0, to = 0;
  std::int64_t capacity = 0;  // >= 0
  Cost cost = 0;              // of one unit; may be negative
};

struct Network {
  std::vector<std::int64_t> supply;  // by vertex: > 0 gives, < 0 takes; the sum is 0
  std::vector<Edge> edges;
};

struct Flow {
  std::vector<std::int64_t> on_edge;
  Cost cost = 0;
};

// Errors: invalid_argument for an edge to no vertex, a negative capacity, supplies that do not sum
// to 0; not_found if no flow meets the supplies.
Result<Flow> min_cost_flow(const Network& network);

// The same problem as assign(), written as a network: vertices are the jobs, the nodes and one
// sink; units of the same price are one edge. Edges of arcs come first, in the order of the
// problem.
Network network_of(const Problem& problem);

}  // namespace kwatt::placement::flow
