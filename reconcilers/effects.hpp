#pragma once
// Performs the effects of a step: patches the Node, evicts pods, talks to the machine.
#include <functional>

#include "hardware/driver.hpp"
#include "kube/client.hpp"
#include "planner/steps.hpp"
#include "reconcilers/cluster_view.hpp"
#include "reconcilers/drivers.hpp"

namespace kwatt::reconcilers {

// May a destructive call start now? Asked right before each: leading, and far enough from the end
// of the lease (design: fencing).
using Fence = std::function<bool()>;

// Field managers: of Nodes and pods, and of the status of our own kinds.
inline constexpr const char* kFieldManager = "kwatt-controller";
inline constexpr const char* kStatusManager = "kwatt-controller-status";

// The merge patch for `patch` on `node`, guarded by the node's resourceVersion; "" when the node is
// already as wanted. Taints are one atomic list in the API, so all of them are sent. Pure.
std::string node_patch_body(const api::Node& node, const planner::PatchNode& patch);

// The apply body that sets, or (absent) gives up, the Node condition Suspended. Pure.
std::string suspended_condition_body(const std::string& node, bool suspended, TimePoint now);

// Errors of the API server as they come; conflict: the node changed meanwhile, look again.
kube::Task<Result<void>> patch_node(kube::Client& client, ClusterView& view,
                                    std::shared_ptr<const api::Node> node,
                                    planner::PatchNode patch);

// One eviction each, in order; a blocked one does not stop the others. `may_act` is asked before
// each: an answer may take long, and the lease may be lost meanwhile. Pods that were not asked for
// any more have no result.
kube::Task<std::vector<planner::EvictionResult>> evict_pods(kube::Client& client,
                                                            std::vector<api::PodMove> pods,
                                                            Fence may_act);

// Workload pods that the API server itself (not our cache) says are on the node; asked right before
// a machine is switched off. Errors: as list.
kube::Task<Result<std::vector<std::string>>> workload_pods_on(kube::Client& client,
                                                              std::string node);

api::PowerState to_power_state(hardware::MachinePower power);

}  // namespace kwatt::reconcilers
