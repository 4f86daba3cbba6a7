#include "planner/pending.hpp"

#include <algorithm>

#include "planner/destinations.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;

// kube-scheduler will look at it, and has not promised it a node.
bool to_be_scheduled(const api::Pod& pod) {
  return pod.workload() && pod.nominated_node_name.empty() && !pod.spec->scheduling_gated &&
         pod.scheduled != api::PodScheduled::gated && !pod.deletion_timestamp;
}

// The order of kube-scheduler's queue: priority, then age.
std::vector<PodPtr> queue(const Snapshot& snapshot) {
  std::vector<PodPtr> pods;
  std::copy_if(snapshot.unbound.begin(), snapshot.unbound.end(), std::back_inserter(pods),
               [](const PodPtr& pod) { return to_be_scheduled(*pod); });
  std::stable_sort(pods.begin(), pods.end(), [](const PodPtr& a, const PodPtr& b) {
    if (a->spec->priority != b->spec->priority) return a->spec->priority > b->spec->priority;
    return a->creation_timestamp < b->creation_timestamp;
  });
  return pods;
}

}  // namespace

bool dormant(const NodeView& node) {
  switch (node.power_state()) {
    case api::PowerState::Off:
    case api::PowerState::PoweringOn:
    case api::PowerState::WakeFailed:
      return true;
    case api::PowerState::On:
      // Just switched on: not a destination before Ready and uncordoned.
      return !node.operation().id.empty() && node.operation().kind == api::OperationKind::PowerOn;
    default:
      return node.memory().powered_off_by_us && !node.ready;
  }
}

std::string_view buffer_of(const api::Pod& pod) {
  return pod.annotations.get(names::kBuffer);
}

Duration pending_since(const api::Pod& pod, TimePoint now) {
  if (pod.scheduled_transition) return now - *pod.scheduled_transition;
  if (pod.creation_timestamp) return now - *pod.creation_timestamp;
  return Duration{0};
}

const Demand& settle(Pass& pass) {
  if (pass.demand) return *pass.demand;
  Demand& demand = pass.demand.emplace();
  std::vector<PodPtr> without_room;
  for (const PodPtr& pod : queue(pass.snapshot)) {
    const auto where = pass.what_if.place(pod);
    const std::string_view buffer = buffer_of(*pod);
    if (where && !buffer.empty()) demand.kept_for.emplace(*where, buffer);
    if (!where && pod->scheduled == api::PodScheduled::unschedulable) without_room.push_back(pod);
  }
  if (without_room.empty()) return demand;
  const std::size_t before = pass.what_if.mark();
  for (const NodeName& name : pass.selected) {
    const auto node = pass.snapshot.nodes.find(name);
    if (node == pass.snapshot.nodes.end() || !dormant(node->second)) continue;
    if (override_of(node->second, pass.snapshot.now).kind == Override::Kind::off) continue;
    pass.what_if.assume_awake(name);
  }
  for (const PodPtr& pod : without_room) {
    if (pass.what_if.place(pod)) demand.waiting.push_back(pod);
  }
  pass.what_if.rollback(before);
  return demand;
}

}  // namespace kwatt::planner
