#pragma once
// When a decision of a pass is news for NodePower.status. Pure.
#include "api/node_power.hpp"

namespace kwatt::reconcilers {

// The same desired state, reason and policy, and the same sentence but for its numbers: "idle for
// 31s of 10m" is not written again each pass, another pod's name is.
bool says_the_same(const api::NodeDecision& a, const api::NodeDecision& b);

}  // namespace kwatt::reconcilers
