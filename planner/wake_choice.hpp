#pragma once
// Which off nodes to wake for these pods: the set that adds the least power.
#include <vector>

#include "planner/levers.hpp"

namespace kwatt::planner {

struct WakeCandidate {
  const NodeView* node = nullptr;
  int rank = 0;  // 0 first; higher ones only for pods that fit no lower one
};

struct WakeChoice {
  const NodeView* node = nullptr;
  std::vector<std::shared_ptr<const api::Pod>> pods;  // that made us choose it
  Milliwatts increase;                                // see wake_increase()
};

// Power that the node adds once it is awake and runs `load` of requests, its boot energy spread
// over the time it will stay on at least.
Milliwatts wake_increase(const NodeView& node, Millicores load, const api::PowerOffSpec& spec);

// At most `limit` of the candidates. Greedy: each round takes the node with the least added power
// per pod and per requested resource that it would hold; then the result is compared with every
// prefix finished by one node that holds all the rest, and nodes whose pods fit beside the others
// are dropped. Candidates that look alike to the pods are tried once per round, and at most 32
// kinds of them, so the work is bounded. Deterministic; ties by name. In pass.what_if the chosen
// nodes are awake afterwards with their pods placed; `pods` keeps those that fit no candidate.
std::vector<WakeChoice> choose_nodes(Pass& pass, std::vector<std::shared_ptr<const api::Pod>>& pods,
                                     const std::vector<WakeCandidate>& candidates,
                                     std::size_t limit);

}  // namespace kwatt::planner
