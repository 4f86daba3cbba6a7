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
  double before = 0, step = -kInfeasible;
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(node[i])) {
      return std::none_of(node.begin() + static_cast<std::ptrdiff_t>(i),
                          node.begin() + static_cast<std::ptrdiff_t>(size),
                          [](double one) { return std::isfinite(one); });
    }
    const double next = node[i] - before;
    if (next < step) return false;
    step = next;
    before = node[i];
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

// The `wanted` cheapest nodes with one count, of all that are offered; of equal ones the first.
class Cheapest {
 public:
  explicit Cheapest(std::size_t wanted) : wanted_(wanted) {}

  void offer(double increase, std::size_t node) {
    if (!(increase < limit_)) return;
    ranked_.emplace_back(increase, node);
    if (ranked_.size() >= 2 * wanted_ + 16) cut();
  }
  const std::vector<std::pair<double, std::size_t>>& result() {
    if (ranked_.size() > wanted_) cut();
    return ranked_;
  }

 private:
  void cut() {
    const auto last = ranked_.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1);
    std::nth_element(ranked_.begin(), last, ranked_.end());
    limit_ = last->first;
    ranked_.resize(wanted_);
  }

  std::size_t wanted_;  // > 0
  // Later nodes must be below it. At first only what can be had at all.
  double limit_ = kInfeasible;
  std::vector<std::pair<double, std::size_t>> ranked_;
};

// The shares that an optimum needs. Given an optimum, take the one with the least sum of ranks. If
// it uses a node with c workloads, at most n - c other nodes have any, so one of the n - c + 1
// cheapest with c has none; were the node not among those, swapping the two would cost no more and
// lower the sum of ranks.
std::vector<Shares> needed_shares(const std::vector<const Increases*>& nodes,
                                  std::size_t workloads) {
  std::vector<Cheapest> cheapest;
  cheapest.reserve(workloads);
  for (std::size_t count = 1; count <= workloads; ++count) {
    cheapest.emplace_back(workloads - count + 1);
  }
  // Node by node, because that is how they lie in memory.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Increases& node = *nodes[i];
    const std::size_t size = std::min(node.size(), workloads);
    for (std::size_t k = 0; k < size; ++k) {
      if (node[k] > -kInfeasible) cheapest[k].offer(node[k], i);
    }
  }
  std::vector<Shares> needed(nodes.size());
  for (std::size_t count = 1; count <= workloads; ++count) {
    for (const auto& [increase, node] : cheapest[count - 1].result()) {
      needed[node].push_back({count, increase});
    }
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
