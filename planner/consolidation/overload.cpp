#include "planner/consolidation/overload.hpp"

#include <algorithm>

namespace kwatt::planner::consolidation {

Load load_of(const Draft& draft, const DraftHost& host, std::uint32_t extra) {
  Load load;
  load.requested = requested_share(draft, host, extra);
  load.largest_memory = host.largest_memory;
  load.history = host.history;
  if (extra != kNone) {
    const History& more = draft.history(extra);
    for (std::size_t i = 0; i < kHistory; ++i) load.history[i] += more[i];
    load.largest_memory = std::max(load.largest_memory, draft.fleet().vms[extra].memory);
  }
  for (double& sample : load.history) sample /= host.cpu;
  load.samples = kHistory;
  while (load.samples > 1 && load.history[load.samples - 1] == 0) --load.samples;
  return load;
}

double requested_share(const Draft& draft, const DraftHost& host, std::uint32_t extra) {
  const double more = extra == kNone ? 0 : draft.fleet().vms[extra].demand;
  return (host.requested + more) / host.cpu;
}

}  // namespace kwatt::planner::consolidation
