#pragma once
// LR and LRR: overloaded when the line through the host's last ten samples, carried on for as long
// as its largest VM takes to leave, reaches the full CPU with a safety margin. Beloglazov and
// Buyya, CCPE 24(13), 2012, sections 5.1.3 and 5.1.4 (after Cleveland's loess).
//
// As CloudSim 3.0.3 calculates it: the weights of loess are applied only when two fifths of them
// are zero, which they never are. So the line is the ordinary least squares one, and the robust
// variant, LRR, which differs in the weights, is the same rule. With fewer than ten samples 0.7 is
// the threshold of what is requested.
#include "planner/consolidation/overload.hpp"

namespace kwatt::planner::consolidation {

class LocalRegression : public OverloadRule {
 public:
  explicit LocalRegression(double safety) : safety_(safety) {}
  bool overloaded(const Draft& draft, const DraftHost& host, std::uint32_t extra) const override;

 private:
  double safety_;
};

}  // namespace kwatt::planner::consolidation
