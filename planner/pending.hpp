#pragma once
// Pods that have no node yet.
#include "planner/levers.hpp"

namespace kwatt::planner {

// Reserves room on awake nodes for the pods that are about to be scheduled there, and finds those
// that wait for lack of resources (pass.demand). The reservations stay in pass.what_if, so that no
// lever takes away a node that a pod is about to use. Does its work once per pass.
//
// A pod waits for lack of resources when its PodScheduled condition says Unschedulable, it has no
// nomination, fits no awake node, and fits a selected node that is off or coming up, seen as clean
// and awake. The scheduler's messages are never read. Pods of DaemonSets never count: those bound
// to a node that is off wait for exactly that node, for as long as it is off.
const Demand& settle(Pass& pass);

// An off node of ours (or one that is on its way up): could it be capacity again?
bool dormant(const NodeView& node);

// Pods that do not exist stand for the room of CapacityBuffers (names::kBuffer): unschedulable, of
// the lowest priority. "" for a real pod, else the buffer's name.
std::string_view buffer_of(const api::Pod& pod);

// Since when the pod has been unschedulable.
Duration pending_since(const api::Pod& pod, TimePoint now);

}  // namespace kwatt::planner
