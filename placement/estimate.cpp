#include "placement/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace kwatt::placement {
namespace {

// One node's increase with so many workloads.
struct Share {
  std::size_t count;
  double increase;
};
using Shares = std::vector<Share>;

double at(const Increases& node, std::size_t count) {
  return count <= node.size() && std::isfinite(node[count - 1]) ? node[count - 1] : kInfeasible;
}

double marginal(const Increases& node, std::size_t count) {
  return at(node, count) - (count == 1 ? 0 : at(node, count - 1));
}

// Counts without gaps, each workload costing at least as much as the one before.
bool is_convex(const Increases& node, std::size_t workloads) {
  const std::size_t size = std::min(node.size(), workloads);
  std::size_t fit = 0;
  while (fit < size && std::isfinite(node[fit])) ++fit;
  for (std::size_t count = fit + 1; count <= size; ++count) {
    if (std::isfinite(node[count - 1])) return false;
  }
  for (std::size_t count = 2; count <= fit; ++count) {
    if (marginal(node, count) < marginal(node, count - 1)) return false;
  }
  return true;
}

// totals[m]: of m workloads on these nodes, for 0 … workloads. The next workload goes where it
// costs least; with convex nodes that stays the best whatever comes after.
std::vector<double> convex_totals(const std::vector<const Increases*>& nodes,
                                  std::size_t workloads) {
  struct Next {
    double cost;
    std::size_t node, count;
    bool operator>(const Next& other) const { return cost > other.cost; }
  };
  std::vector<Next> first;
  first.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double cost = at(*nodes[i], 1);
    if (cost < kInfeasible) first.push_back({cost, i, 1});
  }
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue(std::greater<>(),
                                                                     std::move(first));
  std::vector<std::size_t> taken(nodes.size(), 0);
  std::vector<double> totals(workloads + 1, kInfeasible);
  totals[0] = 0;
  for (std::size_t m = 1; m <= workloads && !queue.empty(); ++m) {
    const Next next = queue.top();
    queue.pop();
    totals[m] = totals[m - 1] + next.cost;
    const Increases& node = *nodes[next.node];
    if (at(node, next.count + 1) < kInfeasible) {
      queue.push({marginal(node, next.count + 1), next.node, next.count + 1});
    }
  }
  return totals;
}

// The shares that an optimum needs. Given an optimum, take the one with the least sum of ranks. If
// it uses a node with c workloads, at most n - c other nodes have any, so one of the n - c + 1
// cheapest with c has none; were the node not among those, swapping the two would cost no more and
// lower the sum of ranks.
std::vector<Shares> needed_shares(const std::vector<const Increases*>& nodes,
                                  std::size_t workloads) {
  std::vector<Shares> needed(nodes.size());
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t count = 1; count <= workloads; ++count) {
    ranked.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double increase = at(*nodes[i], count);
      if (increase < kInfeasible) ranked.emplace_back(increase, i);
    }
    const std::size_t wanted = workloads - count + 1;
    if (ranked.size() > wanted) {
      std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(wanted),
                       ranked.end());
      ranked.resize(wanted);
    }
    for (const auto& [increase, node] : ranked) needed[node].push_back({count, increase});
  }
  return needed;
}

// Adds one node to the totals. `reach`: the most workloads that have a finite total.
void add_node(const Shares& shares, std::size_t workloads, std::vector<double>& totals,
              std::vector<double>& scratch, std::size_t& reach) {
  scratch = totals;
  for (const Share& share : shares) {
    const std::size_t last = std::min(workloads - share.count, reach);
    const double* from = totals.data();
    double* to = scratch.data() + share.count;
    for (std::size_t m = 0; m <= last; ++m) {
      const double sum = from[m] + share.increase;
      to[m] = sum < to[m] ? sum : to[m];
    }
  }
  reach = std::min(workloads, reach + shares.back().count);
  totals.swap(scratch);
}

}  // namespace

std::vector<double> least_increases(std::span<const Increases> nodes, std::size_t workloads) {
  std::vector<const Increases*> convex, others;
  for (const Increases& node : nodes) {
    (is_convex(node, workloads) ? convex : others).push_back(&node);
  }
  std::vector<double> totals = convex_totals(convex, workloads);
  // Totals of convex nodes have no gaps.
  std::size_t reach = 0;
  while (reach < workloads && totals[reach + 1] < kInfeasible) ++reach;
  std::vector<double> scratch;
  for (const Shares& shares : needed_shares(others, workloads)) {
    if (!shares.empty()) add_node(shares, workloads, totals, scratch, reach);
  }
  totals.erase(totals.begin());
  return totals;
}

}  // namespace kwatt::placement
