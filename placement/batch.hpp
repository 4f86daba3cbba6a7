#pragma once
// Many pods at once: which nodes take them for the least additional power. The scores of the
// plugins judge one pod after another, and the order in which pods come decides how well that goes;
// who knows all pods beforehand can do better.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/energy.hpp"

namespace kwatt::placement {

struct BatchSettings {
  EnergySettings energy;
  // Asked once per shape of pod and node about everything but room, which place_batch() counts
  // itself; null: all nodes are open to all pods. Must outlive the call.
  const NodeFramework* filters = nullptr;
  // How often a better plan is looked for by emptying nodes; 0: construction and descent only. The
  // default takes up to a few seconds for 600 pods on 50 nodes.
  std::int64_t rounds = 2000;
};

struct BatchPlan {
  // By pod: the node's position in the targets; nullopt: no room.
  std::vector<std::optional<std::size_t>> node;
  Milliwatts increase;  // of all nodes together, by their curves
};

// What a plan costs: watts after less watts before over all nodes, waking included. Nodes are
// loaded with the pods' expected use.
Milliwatts increase_of(std::span<const PodInfo> pods, NodeTargets nodes,
                       std::span<const std::optional<std::size_t>> plan,
                       const EnergySettings& settings);

// Places as many pods as it finds room for, then for the least increase. Every amount of
// api::Resources counts (a reservation as taken); affinity between pods does not, the caller checks
// it. Deterministic. Curves are neither convex nor concave, so this is a search: greedy
// construction by the least watts per millicore up to each node's best load, then descent by moves
// and swaps, then rounds of emptying and refilling one or two nodes. How near it comes to the
// optimum is measured (docs/explanation/placement.md). Errors: whatever settings.filters->filter()
// fails with.
Result<BatchPlan> place_batch(std::span<const PodInfo> pods, NodeTargets nodes,
                              const BatchSettings& settings = {});

// One after another in the order given, as kube-scheduler's NodeResourcesFit scores with these two
// strategies: the fullest, or the emptiest, node by the mean of cpu and memory requested. For
// comparison.
enum class Allocated { most, least };
Result<BatchPlan> place_by_allocation(std::span<const PodInfo> pods, NodeTargets nodes,
                                      Allocated strategy, const BatchSettings& settings = {});

// One after another by the score of EnergyIncrease alone, each pod seeing those before it: what the
// extender does with pods that come one by one.
Result<BatchPlan> place_one_by_one(std::span<const PodInfo> pods, NodeTargets nodes,
                                   const BatchSettings& settings = {});

}  // namespace kwatt::placement
