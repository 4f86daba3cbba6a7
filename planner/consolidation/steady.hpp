#pragma once
// kwatt's consolidation: few migrations, each for a reason that lasts.
//
//   Relief    A host from which more is wanted than it has sends away the VM that is copied with
//             least loss among those that are enough, or the largest until it is enough.
//   Emptying  A host is emptied when all its VMs find room elsewhere, and what that saves within
//             the horizon repays every migration and the boot that may follow. Hosts that were
//             woken or filled lately are left alone: what came is not sent away again.
//   Room      VMs go to hosts that are on, those of the best energy per work first, the fullest
//             first. There is room if what is wanted now fits, and what is expected fits with a
//             margin for its variation (loads are added, their deviations root-mean-square, so
//             many small VMs need less margin than few large ones), and no host is expected to be
//             driven beyond the load at which its curve is most efficient. Else a host is woken,
//             of the kind that costs least for a full load with its boot.
//
// It knows what the published heuristics know: demands of this moment and samples of the past. That
// is tested by changing the future. Nothing in it depends on how energy is metered: a woken host
// is charged its idle power and its boot.
#include <cstdint>

#include "planner/consolidation/fleet.hpp"
#include "planner/consolidation/forecast.hpp"

namespace kwatt::planner::consolidation {

struct SteadySettings {
  double margin = 1.5;             // deviations kept free on a host that receives
  double headroom = 0.02;          // share of CPU that demands of now must leave free
  double memory_fill = 0.9;        // of a host that receives
  double horizon_seconds = 3'600;  // in which a change must repay
  // That emptying must save for each migration: two hosts busy with it for half a minute, and the
  // disturbance.
  double joules_per_move = 2'000;
  std::uint64_t rest_steps = 6;  // in which a woken or filled host is not emptied
  Forecast forecast = recent_outlook;
};

class Steady : public Policy {
 public:
  explicit Steady(SteadySettings settings = {}) : settings_(settings) {}
  std::vector<Move> decide(const Fleet& fleet) override;

 private:
  SteadySettings settings_;
  std::uint64_t step_ = 0;
  std::vector<std::uint64_t> rests_until_;  // of each host
};

// The load at which the kind does most work per energy, and its watts per CPU there.
struct BestLoad {
  double load = 1;
  double watts_per_cpu = 0;
};
BestLoad best_load(const HostKind& kind);

}  // namespace kwatt::planner::consolidation
