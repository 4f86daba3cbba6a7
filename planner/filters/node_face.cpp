#include "planner/filters/node_face.hpp"

#include <algorithm>
#include <array>

#include "planner/plan.hpp"

namespace kwatt::planner::filters {
namespace {

constexpr std::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";

// What leaves the node when we wake it: ours by us, the rest by Kubernetes.
constexpr std::array<std::string_view, 5> kGoneOnceAwake = {
    names::kCandidateTaint, names::kPowerOffTaint, "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service"};

bool gone_once_awake(const api::Taint& taint, bool cordon_stays) {
  if (taint.key == kUnschedulableTaint) return !cordon_stays;
  return std::find(kGoneOnceAwake.begin(), kGoneOnceAwake.end(), taint.key) != kGoneOnceAwake.end();
}

}  // namespace

bool foreign_cordon(const NodeView& view) {
  return view.node->unschedulable && !view.memory().cordoned_by_us &&
         !view.operation().cordoned_by_us;
}

NodeFace face_of(const NodeView& view, bool as_if_awake) {
  NodeFace face = placement::face_of(*view.node);
  if (!as_if_awake) return face;
  face.unschedulable = foreign_cordon(view);
  std::erase_if(face.taints, [&](const api::Taint* taint) {
    return gone_once_awake(*taint, face.unschedulable);
  });
  return face;
}

}  // namespace kwatt::planner::filters
