#include "placement/flow/network_simplex.hpp"

#include <numeric>

#include <fmt/format.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

namespace kwatt::placement::flow {

Result<Flow> min_cost_flow(const Network& network) {
  const auto vertices = static_cast<int>(network.supply.size());
  if (std::accumulate(network.supply.begin(), network.supply.end(), std::int64_t{0}) != 0) {
    return fail(ErrorCode::invalid_argument, "network: what is given and taken does not sum to 0");
  }
  for (std::size_t e = 0; e < network.edges.size(); ++e) {
    const Edge& edge = network.edges[e];
    if (edge.from >= network.supply.size() || edge.to >= network.supply.size()) {
      return fail(ErrorCode::invalid_argument, fmt::format("network: edge {} leads nowhere", e));
    }
    if (edge.capacity < 0) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("network: edge {} has capacity {}", e, edge.capacity));
    }
  }
  using Graph = lemon::SmartDigraph;
  Graph graph;
  graph.reserveNode(vertices);
  graph.reserveArc(static_cast<int>(network.edges.size()));
  for (int v = 0; v < vertices; ++v) graph.addNode();
  for (const Edge& edge : network.edges) {
    graph.addArc(Graph::nodeFromId(static_cast<int>(edge.from)),
                 Graph::nodeFromId(static_cast<int>(edge.to)));
  }
  Graph::ArcMap<std::int64_t> capacity(graph), cost(graph);
  Graph::NodeMap<std::int64_t> supply(graph);
  for (std::size_t e = 0; e < network.edges.size(); ++e) {
    const auto arc = Graph::arcFromId(static_cast<int>(e));
    capacity[arc] = network.edges[e].capacity;
    cost[arc] = network.edges[e].cost;
  }
  for (int v = 0; v < vertices; ++v) {
    supply[Graph::nodeFromId(v)] = network.supply[static_cast<std::size_t>(v)];
  }
  lemon::NetworkSimplex<Graph, std::int64_t, Cost> simplex(graph);
  simplex.upperMap(capacity).costMap(cost).supplyMap(supply);
  if (simplex.run() != lemon::NetworkSimplex<Graph, std::int64_t, Cost>::OPTIMAL) {
    return fail(ErrorCode::not_found, "network: no flow meets the supplies");
  }
  Flow flow;
  flow.on_edge.resize(network.edges.size());
  for (std::size_t e = 0; e < network.edges.size(); ++e) {
    flow.on_edge[e] = simplex.flow(Graph::arcFromId(static_cast<int>(e)));
  }
  flow.cost = simplex.totalCost();
  return flow;
}

Network network_of(const Problem& problem) {
  Network network;
  const auto jobs = static_cast<std::uint32_t>(problem.jobs());
  const auto nodes = static_cast<std::uint32_t>(problem.nodes());
  const std::uint32_t sink = jobs + nodes;
  network.supply.assign(sink + 1, 0);
  network.edges.reserve(problem.arcs.size() + jobs + problem.unit.size());
  for (std::uint32_t i = 0; i < jobs; ++i) {
    network.supply[i] = 1;
    for (std::uint32_t a = problem.first[i]; a < problem.first[i + 1]; ++a) {
      network.edges.push_back({i, jobs + problem.arcs[a].node, 1, problem.arcs[a].cost});
    }
  }
  network.supply[sink] = -static_cast<std::int64_t>(jobs);
  for (std::uint32_t i = 0; i < jobs; ++i) {
    network.edges.push_back({i, sink, 1, problem.unplaced[i]});
  }
  for (std::uint32_t j = 0; j < nodes; ++j) {
    for (std::uint32_t k = problem.unit_first[j]; k < problem.unit_first[j + 1];) {
      std::uint32_t end = k;
      while (end < problem.unit_first[j + 1] && problem.unit[end] == problem.unit[k]) ++end;
      network.edges.push_back(
          {jobs + j, sink, static_cast<std::int64_t>(end - k), problem.unit[k]});
      k = end;
    }
  }
  return network;
}

}  // namespace kwatt::placement::flow
