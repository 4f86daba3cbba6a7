#pragma once
// Takes the scheduling gate kwatt.dev/queue off a pod: the body of the patch. Pure.
//
// The gate goes, and in the same write come the annotations that say why, and, where the strategy
// chose a node, a preference for it (weight 100): kube-scheduler decides, and it may know better.
// What Kubernetes allows of a gated pod: its node affinity may be narrowed, preferences may change.
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kwatt::reconcilers {

struct GateRelease {
  std::string uid;   // the pod of the decision; a namesake is not released
  std::string node;  // "": none was chosen
  std::string why;   // a word of planner::queue::Why
};

// `pod` as the API server has it now. "": the pod does not have the gate (any more). Tests
// everything that it was made from, so that it fails (422) if the pod has changed since.
// Errors: parse; conflict: it is another pod.
Result<std::string> release_body(std::string_view pod, const GateRelease& release);

// Merge patch that says why a pod waits, for the pod of this uid.
std::string waiting_body(const std::string& uid, const std::string& why);

}  // namespace kwatt::reconcilers
