#pragma once
// IQR and MAD: the more the host's load varied, the lower the threshold, 1 - safety × spread, with
// the interquartile range or the median absolute deviation of the last samples as spread.
// Beloglazov and Buyya, CCPE 24(13), 2012, sections 5.1.1 and 5.1.2. With fewer than 12 samples
// (the count is CloudSim's) the spread says nothing: 0.7 is the threshold.
#include "planner/consolidation/overload.hpp"

namespace kwatt::planner::consolidation {

// The samples; the order is free to change.
using Spread = double (*)(History& samples, std::size_t count);
double interquartile_range(History& samples, std::size_t count);
double median_absolute_deviation(History& samples, std::size_t count);

class AdaptiveThreshold : public OverloadRule {
 public:
  AdaptiveThreshold(Spread spread, double safety) : spread_(spread), safety_(safety) {}
  bool overloaded(const Draft& draft, const DraftHost& host, std::uint32_t extra) const override;

 private:
  Spread spread_;
  double safety_;
};

}  // namespace kwatt::planner::consolidation
