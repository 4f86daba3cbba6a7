#include "reconcilers/held_room.hpp"

#include <algorithm>

namespace kwatt::reconcilers {
namespace {

bool evicts(const api::Operation& operation) {
  return !operation.id.empty() && (operation.kind == api::OperationKind::PowerOff ||
                                   operation.kind == api::OperationKind::Migrate);
}

}  // namespace

void HeldRoom::operation(const std::string& node, const api::Operation& operation,
                         const std::vector<std::shared_ptr<const api::Pod>>& pods, TimePoint now) {
  const auto still_there = [&](const std::string& uid) {
    return std::find_if(pods.begin(), pods.end(), [&](const auto& pod) { return pod->uid == uid; });
  };
  if (evicts(operation)) {
    for (const api::PodMove& move : operation.moves) {
      if (held_.contains(move.uid) || move.node_name.empty()) continue;
      const auto pod = still_there(move.uid);
      if (pod == pods.end()) continue;
      Held held;
      held.from = node;
      held.to = move.node_name;
      held.room.namespace_name = move.namespace_name;
      if ((*pod)->owner != nullptr) held.room.owner_uid = (*pod)->owner->uid;
      held.room.pod_uid = move.uid;
      held.room.need = (*pod)->spec->requests;
      held.room.need.pods = 1;
      held.since = now;
      held_.emplace(move.uid, std::move(held));
      changed_(move.node_name);
    }
  }
  // What this node's operation does not move any more, while the pod is where it was.
  for (auto entry = held_.begin(); entry != held_.end();) {
    const bool listed =
        evicts(operation) &&
        std::any_of(operation.moves.begin(), operation.moves.end(),
                    [&](const api::PodMove& move) { return move.uid == entry->first; });
    if (entry->second.from != node || listed || entry->second.gone_at ||
        still_there(entry->first) == pods.end()) {
      ++entry;
      continue;
    }
    const std::string to = entry->second.to;
    entry = held_.erase(entry);
    changed_(to);
  }
}

void HeldRoom::gone(const api::Pod& pod, TimePoint now) {
  const auto found = held_.find(pod.uid);
  if (found == held_.end() || found->second.gone_at) return;
  // Nobody makes a bare pod anew.
  if (found->second.room.owner_uid.empty()) {
    const std::string to = found->second.to;
    held_.erase(found);
    changed_(to);
    return;
  }
  found->second.gone_at = now;
}

void HeldRoom::bound(const api::Pod& pod) {
  if (pod.owner == nullptr || held_.contains(pod.uid)) return;
  // Its own room if it came where it was expected, else the one that has waited longest. Times of
  // the API server are whole seconds, so one second of slack.
  auto taken = held_.end();
  for (auto entry = held_.begin(); entry != held_.end(); ++entry) {
    const Held& held = entry->second;
    if (held.room.namespace_name != pod.namespace_name || held.room.owner_uid != pod.owner->uid ||
        !pod.creation_timestamp || *pod.creation_timestamp + std::chrono::seconds{1} < held.since) {
      continue;
    }
    const bool here = held.to == pod.node_name;
    const bool better =
        taken == held_.end() || (here && taken->second.to != pod.node_name) ||
        (here == (taken->second.to == pod.node_name) && held.since < taken->second.since);
    if (better) taken = entry;
  }
  if (taken == held_.end()) return;
  const std::string to = taken->second.to;
  held_.erase(taken);
  changed_(to);
}

void HeldRoom::expire(TimePoint now) {
  for (auto entry = held_.begin(); entry != held_.end();) {
    if (!entry->second.gone_at || now - *entry->second.gone_at < kPatience) {
      ++entry;
      continue;
    }
    const std::string to = entry->second.to;
    entry = held_.erase(entry);
    changed_(to);
  }
}

std::vector<placement::Reservation> HeldRoom::on(const std::string& node) const {
  std::vector<placement::Reservation> rooms;
  for (const auto& [uid, held] : held_) {
    if (held.to == node) rooms.push_back(held.room);
  }
  return rooms;
}

}  // namespace kwatt::reconcilers
