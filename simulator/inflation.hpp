#pragma once
// The inflation experiment of FGD (Q. Weng et al., USENIX ATC 2023, with the conventions of its
// simulator, hkust-adsl/kubernetes-scheduler-simulator): pods arrive in random order, one by one,
// until they have asked for so many percent of the cluster's GPUs; nobody leaves; a pod that fits
// nowhere is gone. How much of the GPUs is then allocated?
//
// - The pods of the list are shuffled. Do they ask for more than the target, random ones are taken
//   out; for less, random ones of the list follow until one more would pass it.
// - The nodes are shuffled, so that ties, which go to the first node of the list, are no system.
// - Read at the end: the mean over all arrivals at which what was asked for rounds to the target.
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "placement/strategies/strategy.hpp"
#include "simulator/traces/openb.hpp"

namespace kwatt::simulator {

struct InflationSettings {
  int target_percent = 130;
  std::uint64_t seed = 42;
};

struct Inflation {
  double allocated_percent = 0;  // of the cluster's GPU thousandths
  std::size_t arrived = 0, placed = 0;
};

// Drives `strategy`, which should be new, with one decide() for each pod. Deterministic by seed.
// Errors: invalid_argument: no GPUs in the cluster, no GPU asked for, more than 64 GPU models, a
// target below 1, or what Cluster::create() refuses.
Result<Inflation> inflate(std::span<const OpenbNode> nodes, std::span<const OpenbPod> pods,
                          placement::strategies::Strategy& strategy,
                          const InflationSettings& settings = {});

}  // namespace kwatt::simulator
