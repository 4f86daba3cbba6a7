#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::scheduling_gates {

bool passes(const api::PodTemplate& pod) {
  return !pod.scheduling_gated;
}

std::string explain() {
  return "the pod waits for its scheduling gates";
}

}  // namespace kwatt::placement::filters::scheduling_gates
