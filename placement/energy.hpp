#pragma once
// What a pod on a node costs in watts: the node's whole curve, idle power and waking it included.
#include "base/time.hpp"
#include "placement/node_info.hpp"

namespace kwatt::placement {

struct EnergySettings {
  // Over how long the energy of a boot is counted: a machine that is woken stays on at least so
  // long.
  Duration boot_over = std::chrono::minutes{10};
};

// CPU in use on the node now; 0 on one that is not awake.
Millicores used_now(const NodeInfo& node);

// What waking the node costs before it does anything: idle power less standby power, and its boot
// energy spread over settings.boot_over. 0 for a node that is awake.
Milliwatts wake_cost(const NodeInfo& node, const EnergySettings& settings);

// Watts after less watts before, when `extra` runs beside what runs now. From the predictor's table
// if the node is awake and the table reaches that far, else from the curve; of a node that is not
// awake with wake_cost(). May be negative only if the predictor says so.
struct Increase {
  Milliwatts watts;
  bool predicted = false;
};
Increase increase(const NodeInfo& node, Millicores extra, const EnergySettings& settings);

// Brings costs into the range: the least gets `most`, twice the least about half of it, so that
// equal scores mean nearly equal costs however dear the dearest node is. `smooth` (in the unit of
// the costs, > 0) is added to each: differences far below it do not count. Exact at the top: only
// the least costs get `most`.
void normalize_costs(ScoreRange range, std::span<std::int64_t> costs, std::int64_t smooth);

}  // namespace kwatt::placement
