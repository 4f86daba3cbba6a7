#pragma once
// When is a host overloaded? The detectors of Beloglazov and Buyya, "Optimal Online Deterministic
// Algorithms and Adaptive Heuristics for Energy and Performance Efficient Dynamic Consolidation of
// Virtual Machines in Cloud Data Centers", CCPE 24(13), 2012. One file each.
#include "planner/consolidation/draft.hpp"

namespace kwatt::planner::consolidation {

class OverloadRule {
 public:
  virtual ~OverloadRule() = default;
  // The host with its VMs, and with `extra` too unless that is kNone.
  virtual bool overloaded(const Draft& draft, const DraftHost& host,
                          std::uint32_t extra = kNone) const = 0;
};

// What rules look at: a host's own figures and those of one VM more.
struct Load {
  double requested = 0;  // share of the host's CPU
  History history{};     // the same, newest first
  std::size_t samples = 0;
  double largest_memory = 0;
};
Load load_of(const Draft& draft, const DraftHost& host, std::uint32_t extra);
double requested_share(const Draft& draft, const DraftHost& host, std::uint32_t extra);

}  // namespace kwatt::planner::consolidation
