#include "planner/filters/filters.hpp"

namespace kwatt::planner::filters::scheduling_gates {

bool passes(const api::PodTemplate& pod) {
  return !pod.scheduling_gated;
}

std::string explain() {
  return "the pod waits for its scheduling gates";
}

}  // namespace kwatt::planner::filters::scheduling_gates
