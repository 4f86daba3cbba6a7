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

// Of a host and one VM more: the share of its CPU that is requested, and how far back there are
// samples.
double requested_share(const Draft& draft, const DraftHost& host, std::uint32_t extra);
std::size_t samples_of(const Draft& draft, const DraftHost& host, std::uint32_t extra);

}  // namespace kwatt::planner::consolidation
