#pragma once
// Off nodes that look alike to the waiting pods, so that one of each kind stands for all.
#include <deque>
#include <vector>

#include "planner/wake_choice.hpp"

namespace kwatt::planner {

struct WakeKind {
  int rank = 0;
  Milliwatts per_core;                // added power at half load, boot included, per core
  std::deque<const NodeView*> nodes;  // by name; the front is next
};

// Sorted by rank, then by added power per core, then by name of the first node. Nodes are of one
// kind if they agree in what they offer, their power model, their taints, the labels that the pods
// or their zone refer to, and in which of the pods that name single nodes or volumes they can take.
std::vector<WakeKind> kinds_of(Pass& pass, const std::vector<WakeCandidate>& candidates,
                               const std::vector<std::shared_ptr<const api::Pod>>& pods);

}  // namespace kwatt::planner
