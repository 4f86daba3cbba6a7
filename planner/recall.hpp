#pragma once
// Nodes that are being drained and could stay: cheaper than any boot.
#include "planner/levers.hpp"

namespace kwatt::planner {

// May this operation still be called off without the machine noticing? (PowerOff before SoftOff.)
bool can_be_recalled(const api::Operation& operation);

// A PowerOn for each node in a drain that takes pods which fit no awake node now. The executor
// cannot begin it while the drain runs; the decision it leaves makes the drain undo itself.
// The pods are reserved in pass.what_if.
std::vector<Action> recall(Pass& pass);

// When a guard halts the policy: the same for every drain and migration that can be called off, so
// that no more pods are evicted. `why` becomes the reason and message.
bool can_be_called_off(const api::Operation& operation);
std::vector<Action> call_off(const Pass& pass, const Verdict& why);

}  // namespace kwatt::planner
