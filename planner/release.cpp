// What must be given back.
#include <unordered_set>

#include <fmt/format.h>

#include "planner/plan.hpp"
#include "planner/request.hpp"

namespace kwatt::planner {
namespace {

std::string message_for(Reason reason, const std::string& policy) {
  switch (reason) {
    case Reason::PolicyDeleted:
      return fmt::format("policy {} is being deleted: everything it holds is given back", policy);
    case Reason::RecommendOnly:
      return fmt::format("policy {} only recommends now: everything it holds is given back",
                         policy);
    default:
      return fmt::format("policy {} does not have the node any more", policy);
  }
}

}  // namespace

std::vector<Action> release(const Snapshot& snapshot, const std::string& policy_name,
                            const std::vector<NodeName>& keep, Reason reason) {
  std::vector<Action> actions;
  if (!snapshot.sync.synced) return actions;
  const std::unordered_set<NodeName> kept{keep.begin(), keep.end()};
  for (const auto& [name, node] : snapshot.nodes) {
    if (kept.count(name) > 0) continue;
    const RequestNote note = request_on(*node.node);
    const bool holds = node.memory().owner_policy == policy_name ||
                       (!note.id.empty() && note.policy == policy_name);
    if (!holds) continue;
    // What is under way is called off by its own steps; then it is our turn.
    if (!node.operation().id.empty()) continue;
    // A machine that could not be woken is tried again when its backoff is over.
    const auto& next_attempt = node.memory().next_attempt;
    if (!node.ready && next_attempt && *next_attempt > snapshot.now) continue;
    // So is a limit that its BMC would not give back.
    if (node.machine != nullptr && node.machine->status.bmc.original_known) {
      const auto& again = node.machine->status.bmc.next_attempt;
      if (again && *again > snapshot.now) continue;
    }
    Action action;
    action.node = name;
    action.what = Release{};
    action.reason = reason;
    action.message = message_for(reason, policy_name);
    action.pre.node_uid = node.node->meta.uid;
    if (node.machine != nullptr) action.pre.machine_version = node.machine->meta.resource_version;
    action.pre.snapshot_seq = snapshot.seq;
    actions.push_back(std::move(action));
  }
  return actions;
}

}  // namespace kwatt::planner
