#include "planner/recall.hpp"

#include <fmt/format.h>

#include "planner/destinations.hpp"
#include "planner/pending.hpp"
#include "planner/propose.hpp"
#include "planner/steps_common.hpp"

namespace kwatt::planner {

bool can_be_recalled(const api::Operation& operation) {
  if (operation.id.empty() || operation.kind != api::OperationKind::PowerOff) return false;
  return operation.step == steps::kCordon || operation.step == steps::kEvict ||
         operation.step == steps::kWaitEmpty || operation.step == steps::kEvacuate;
}

bool can_be_called_off(const api::Operation& operation) {
  if (can_be_recalled(operation)) return true;
  if (operation.id.empty() || operation.kind != api::OperationKind::Migrate) return false;
  return operation.step == steps::kTaint || operation.step == steps::kEvict ||
         operation.step == steps::kWaitEmpty;
}

std::vector<Action> call_off(const Pass& pass, const Verdict& why) {
  std::vector<Action> actions;
  for (const NodeName& name : pass.selected) {
    const auto found = pass.snapshot.nodes.find(name);
    if (found == pass.snapshot.nodes.end()) continue;
    if (!can_be_called_off(found->second.operation())) continue;
    actions.push_back(
        action_on(pass, found->second, PowerOn{}, why.reason, why.message, Milliwatts{}));
  }
  return actions;
}

namespace {

Verdict wish_of(const api::Pod& pod) {
  const std::string_view buffer = buffer_of(pod);
  if (buffer.empty()) {
    return {Reason::PendingPods, fmt::format("pod {} waits for its room", pod.key())};
  }
  return {Reason::Headroom, fmt::format("CapacityBuffer {} wants its room", buffer)};
}

}  // namespace

std::vector<Action> recall(Pass& pass) {
  std::vector<Action> actions;
  std::vector<const NodeView*> draining;
  for (const NodeName& name : pass.selected) {
    const auto found = pass.snapshot.nodes.find(name);
    if (found == pass.snapshot.nodes.end()) continue;
    const NodeView& node = found->second;
    if (!can_be_recalled(node.operation()) || node.operation().then_wake || !node.ready) continue;
    if (override_of(node, pass.snapshot.now).kind == Override::Kind::off) continue;
    draining.push_back(&node);
  }
  if (draining.empty()) return actions;
  settle(pass);
  std::map<NodeName, Verdict> for_pod;
  for (const auto& pod : pass.snapshot.unbound) {
    if (pod->scheduled != api::PodScheduled::unschedulable || !pod->workload() ||
        pod->deletion_timestamp || !pod->nominated_node_name.empty()) {
      continue;
    }
    if (pending_since(*pod, pass.snapshot.now) < pass.spec.power_on.pending_for) continue;
    // settle() has placed what fits an awake node; the rest may fit one that stays.
    const std::size_t mark = pass.what_if.mark();
    if (pass.what_if.place(pod)) {
      pass.what_if.rollback(mark);
      continue;
    }
    for (const NodeView* node : draining) {
      if (for_pod.count(node->name()) == 0) pass.what_if.assume_awake(node->name());
      if (pass.what_if.place_on(pod, node->name()) == std::nullopt) {
        for_pod.emplace(node->name(), wish_of(*pod));
        break;
      }
      if (for_pod.count(node->name()) == 0) pass.what_if.rollback(mark);
    }
  }
  for (const NodeView* node : draining) {
    const auto pod = for_pod.find(node->name());
    if (pod == for_pod.end()) continue;
    actions.push_back(action_on(pass, *node, PowerOn{}, pod->second.reason,
                                "stays: " + pod->second.message, Milliwatts{}));
  }
  return actions;
}

}  // namespace kwatt::planner
