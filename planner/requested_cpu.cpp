#include "planner/requested_cpu.hpp"

namespace kwatt::planner {

Millicores requested_cpu(const NodeView& node) {
  Millicores sum;
  for (const auto& pod : node.pods) {
    if (!pod->terminal()) sum += pod->spec->requests.cpu;
  }
  return sum;
}

}  // namespace kwatt::planner
