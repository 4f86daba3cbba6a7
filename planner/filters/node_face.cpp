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
  NodeFace face;
  face.node = view.node.get();
  const bool cordon_stays = as_if_awake ? foreign_cordon(view) : view.node->unschedulable;
  face.unschedulable = cordon_stays;
  for (const api::Taint& taint : view.node->taints) {
    if (taint.effect == "PreferNoSchedule") continue;
    if (as_if_awake && gone_once_awake(taint, cordon_stays)) continue;
    face.taints.push_back(&taint);
  }
  return face;
}

}  // namespace kwatt::planner::filters
