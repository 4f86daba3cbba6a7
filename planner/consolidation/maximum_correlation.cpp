#include "planner/consolidation/selection.hpp"

namespace kwatt::planner::consolidation {

std::uint32_t MaximumCorrelation::select(const Draft& draft, const DraftHost& host) {
  return fallback_.select(draft, host);
}

}  // namespace kwatt::planner::consolidation
