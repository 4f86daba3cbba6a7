#pragma once
// The published heuristics of dynamic consolidation: a detector of overload, a choice of VMs, and
// PABFD. Beloglazov and Buyya, CCPE 24(13), 2012, section 4, with the order and the omissions of
// CloudSim 3.0.3 (`optimizeAllocation`), whose figures are the literature's yardstick:
//
//   1. Overloaded hosts are found; VMs leave each until it is overloaded no more.
//   2. Those VMs are placed anew, on woken hosts too. One that finds no host stays.
//   3. The host with the least load is emptied if all its VMs find a host that is on; again and
//      again. Hosts that step 2 gave VMs are not spared, so a VM may be moved twice.
#include <memory>

#include "planner/consolidation/overload.hpp"
#include "planner/consolidation/selection.hpp"

namespace kwatt::planner::consolidation {

class Heuristic : public Policy {
 public:
  Heuristic(std::unique_ptr<OverloadRule> rule, std::unique_ptr<SelectionRule> selection)
      : rule_(std::move(rule)), selection_(std::move(selection)) {}
  std::vector<Move> decide(const Fleet& fleet) override;

 private:
  std::unique_ptr<OverloadRule> rule_;
  std::unique_ptr<SelectionRule> selection_;
};

// No migration: "DVFS" of the literature, hosts follow their load and are never emptied.
class Static : public Policy {
 public:
  std::vector<Move> decide(const Fleet&) override { return {}; }
};

}  // namespace kwatt::planner::consolidation
