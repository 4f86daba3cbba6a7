#pragma once
// What dvfs and capping share: may the agent's settings on this node be changed at all, and pods
// that leave a node which stays in service.
#include <set>
#include <string>

#include "planner/candidates.hpp"
#include "planner/levers.hpp"

namespace kwatt::planner {

// Excluded, ControlPlane, InProgress, NodeNotReady, Manual (one of `keys` was set by hand) or
// AgentStale (no agent has ever reported, and one is needed); nullopt: they may be changed.
std::optional<Verdict> settings_refused(const Pass& pass, const NodeView& node,
                                        const std::set<std::string>& keys,
                                        bool agent_needed = true);

// Nodes whose settings count at all: awake and in service or not, but on.
bool is_running(const NodeView& node);

// Sends pods away until `excess` (of the node's utilization) is gone: each time the smallest pod
// that is enough alone, else the biggest; at most `max_pods`. A pod's share of the load goes by its
// CPU request. Destinations in order of `destinations`, each only while it stays below `limit`.
// The reservations stay in pass.what_if.
struct Relief {
  std::vector<api::PodMove> moves;
  Permille moved;                  // of the source's utilization
  std::optional<Verdict> refusal;  // why nothing, or nothing more, could be moved
};
struct Destination {
  const NodeView* node = nullptr;
  Permille utilization;  // grows as pods are placed
};
Relief relieve(Pass& pass, const Candidates& candidates, const NodeView& node, Permille utilization,
               Permille excess, std::size_t max_pods, std::vector<Destination>& destinations,
               Permille limit);

// Nodes that can take load: destinations of the what-if with a window mean below `below`, the
// busiest first, ties by name.
std::vector<Destination> destinations_below(const Pass& pass, Permille below, Duration window);

// A Migrate has ended here a moment ago: its cool-down is over, and not for long. Then `window`
// holds nothing from before it.
bool just_relieved(const NodeView& node, Duration window, TimePoint now);

}  // namespace kwatt::planner
