#include "reconcilers/estimator_room.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::reconcilers {

Millicores requested_by(const std::vector<std::shared_ptr<const api::Pod>>& pods) {
  Millicores sum;
  for (const auto& pod : pods) {
    if (!pod->terminal()) sum += pod->spec->requests.cpu;
  }
  return sum;
}

std::int64_t processors_of(const api::Node& node) {
  return std::max<std::int64_t>(1, (node.allocatable.cpu.count() + 999) / 1000);
}

EstimatorRoom estimator_room(const api::Node& node,
                             const std::vector<std::shared_ptr<const api::Pod>>& pods) {
  EstimatorRoom room;
  room.free = node.allocatable.cpu - requested_by(pods);
  room.free_pods = node.allocatable.pods;
  for (const auto& pod : pods) {
    if (!pod->terminal()) --room.free_pods;
  }
  room.free = std::max(room.free, Millicores{0});
  room.free_pods = std::max<std::int64_t>(room.free_pods, 0);
  const api::Condition* ready = api::find_condition(node.conditions, "Ready");
  if (node.unschedulable) {
    room.reason = "Unschedulable";
    room.message = "the node is cordoned";
  } else if (ready == nullptr || ready->status != "True") {
    room.reason = "NodeNotReady";
    room.message = "the node is not ready";
  } else {
    for (const api::Taint& taint : node.taints) {
      if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
      room.reason = "Tainted";
      room.message = fmt::format("the node has the taint {}:{}", taint.key, taint.effect);
      break;
    }
  }
  return room;
}

}  // namespace kwatt::reconcilers
