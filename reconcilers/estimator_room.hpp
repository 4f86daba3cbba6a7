#pragma once
// What a Node has left for workloads, and what keeps them away from it. Pure.
#include <memory>
#include <string>
#include <vector>

#include "api/core.hpp"

namespace kwatt::reconcilers {

struct EstimatorRoom {
  Millicores free;  // allocatable minus requested
  std::int64_t free_pods = 0;
  std::string reason, message;  // why no workload without tolerations can come; "": it can
};

// `pods`: those bound to the node. Only CPU and pods count: an estimate is asked for with nothing
// else.
EstimatorRoom estimator_room(const api::Node& node,
                             const std::vector<std::shared_ptr<const api::Pod>>& pods);
// Millicores that the pods request together.
Millicores requested_by(const std::vector<std::shared_ptr<const api::Pod>>& pods);
// Whole CPUs that the node offers to pods, at least 1.
std::int64_t processors_of(const api::Node& node);

}  // namespace kwatt::reconcilers
