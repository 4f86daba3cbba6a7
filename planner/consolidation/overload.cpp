#include "planner/consolidation/overload.hpp"

#include <algorithm>

namespace kwatt::planner::consolidation {

double requested_share(const Draft& draft, const DraftHost& host, std::uint32_t extra) {
  const double more = extra == kNone ? 0 : draft.fleet().vms[extra].demand;
  return (host.requested + more) / host.cpu;
}

std::size_t samples_of(const Draft& draft, const DraftHost& host, std::uint32_t extra) {
  return extra == kNone ? host.samples : std::max(host.samples, draft.samples(extra));
}

}  // namespace kwatt::planner::consolidation
