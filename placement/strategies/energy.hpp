#pragma once
// What a job costs a node in power, for the strategies that compare it.
#include <algorithm>

#include "placement/strategies/cluster.hpp"

namespace kwatt::placement::strategies {

// What waking the node costs before it does anything, in milliwatts: idle less standby power, and
// the energy of a boot spread over `boot_over`. 0 for a node that is awake or booting.
inline double wake_cost(const Cluster& cluster, NodeIndex i, Duration boot_over) {
  if (!cluster.off(i)) return 0;
  const NodeSpec& node = cluster.node(i);
  const auto seconds = std::max(1.0, static_cast<double>(boot_over.count()) / 1000.0);
  return static_cast<double>((node.power.curve.idle() - node.power.standby).count()) +
         static_cast<double>(node.power.boot_energy.count()) / seconds;
}

// Milliwatts after less milliwatts before, with so many millicores more.
inline double increase(const Cluster& cluster, NodeIndex i, std::int64_t millicores,
                       Duration boot_over) {
  return cluster.draw_with(i, millicores) - cluster.draw(i) + wake_cost(cluster, i, boot_over);
}

}  // namespace kwatt::placement::strategies
