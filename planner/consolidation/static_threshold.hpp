#pragma once
// THR: overloaded when more than a fixed share of the CPU is requested. Beloglazov and Buyya, CCPE
// 24(13), 2012, section 5.1 (the static threshold they compare with).
#include "planner/consolidation/overload.hpp"

namespace kwatt::planner::consolidation {

class StaticThreshold : public OverloadRule {
 public:
  explicit StaticThreshold(double threshold) : threshold_(threshold) {}
  bool overloaded(const Draft& draft, const DraftHost& host, std::uint32_t extra) const override {
    return requested_share(draft, host, extra) > threshold_;
  }

 private:
  double threshold_;
};

}  // namespace kwatt::planner::consolidation
