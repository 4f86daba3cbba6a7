#pragma once
// PABFD, power-aware best fit decreasing: VMs by decreasing CPU demand, each to the host whose
// power it raises least among those that it does not overload. Beloglazov and Buyya, CCPE 24(13),
// 2012, algorithm 2.
//
// As CloudSim 3.0.3 calculates it: the increase is taken from the host's power as last measured,
// not as drafted, and a host that is off counts with its idle power. So the idle power of a woken
// host is never charged, and a host that already receives VMs looks as dear as all of them.
#include <vector>

#include "planner/consolidation/overload.hpp"

namespace kwatt::planner::consolidation {

// By CPU demand, greatest first; equals keep their order.
void sort_by_demand(const Fleet& fleet, std::vector<std::uint32_t>& vms);

class BestFit {
 public:
  BestFit(Draft& draft, const OverloadRule& rule);

  void exclude(std::uint32_t host);
  bool excluded(std::uint32_t host) const { return excluded_[host]; }
  // Drafted to the host, which is returned. kNone: no host.
  std::uint32_t place(std::uint32_t vm);

 private:
  struct Best {
    std::uint32_t host = kNone;
    double increase = 0;
  };
  void consider(std::uint32_t vm, std::uint32_t host, Best& best) const;
  Draft& draft_;
  const OverloadRule& rule_;
  std::vector<bool> excluded_;
  std::vector<double> watts_;         // of each host as measured
  std::vector<std::uint32_t> busy_;  // hosts that are on or have VMs, and are not excluded
  // Of each kind those that are off and empty, which are all alike: the last is first in order.
  std::vector<std::vector<std::uint32_t>> idle_;
};

}  // namespace kwatt::planner::consolidation
