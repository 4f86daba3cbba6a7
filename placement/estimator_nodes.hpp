#pragma once
// The machines of an Estimator as one value: room, and power as a function of the CPU that comes on
// top. Built by reconcilers/, asked by servers/. Pure.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "placement/estimate.hpp"

namespace kwatt::placement {

// Of one machine: what it draws with so much CPU requested on top of what it does now.
struct DrawPoint {
  Millicores extra;
  Milliwatts draw;
  bool operator==(const DrawPoint&) const = default;
};

struct EstimatorNode {
  std::string name;
  Millicores free;             // allocatable minus requested
  std::int64_t free_pods = 0;  // the same of pods
  // Sorted by extra, the first at 0, no two alike; linear between two, not known beyond the last.
  // Empty: nothing can be placed there.
  std::vector<DrawPoint> draw;
  bool operator==(const EstimatorNode&) const = default;
};

struct EstimatorNodes {
  std::vector<EstimatorNode> nodes;
  bool operator==(const EstimatorNodes&) const = default;
};

// Leaves out points that lie on the line between their neighbours: the same function with less to
// look at. The points are sorted.
std::vector<DrawPoint> without_needless(const std::vector<DrawPoint>& points);

// Microwatts, whole numbers: so small because a workload may ask for a thousandth of a CPU, and
// whole so that sums are exact. As many as fit by CPU and pods, `workloads` at most.
Increases increases_of(const EstimatorNode& node, Millicores each, std::size_t workloads);

// The least increase in watts for 1 … workloads of `each`; kInfeasible beyond what fits.
std::vector<double> least_watts(const EstimatorNodes& nodes, Millicores each,
                                std::size_t workloads);

}  // namespace kwatt::placement
