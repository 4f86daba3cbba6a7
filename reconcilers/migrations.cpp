#include "reconcilers/migrations.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace kwatt::reconcilers {
namespace {
constexpr std::size_t kKeep = 1000;  // over all policies
}  // namespace

void Migrations::evicting(const std::string& policy, const std::string& from_node,
                          const std::vector<api::PodMove>& moves, const std::string& reason,
                          TimePoint now,
                          const std::map<std::string, std::string>& owner_by_pod_uid) {
  for (const api::PodMove& move : moves) {
    const bool known = std::any_of(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.pod_uid == move.uid; });
    if (known) continue;
    const auto owner = owner_by_pod_uid.find(move.uid);
    Entry entry;
    entry.policy = policy;
    entry.pod_uid = move.uid;
    entry.owner_uid = owner == owner_by_pod_uid.end() ? "" : owner->second;
    entry.since = now;
    entry.status = {.pod_name = move.pod_name,
                    .namespace_name = move.namespace_name,
                    .from_node = from_node,
                    .node_name = move.node_name,
                    .bound_node = "",
                    .phase = "Evicting",
                    .reason = reason};
    entries_.push_back(std::move(entry));
  }
  while (entries_.size() > kKeep) entries_.pop_front();
}

void Migrations::gone(const api::Pod& pod) {
  for (Entry& entry : entries_) {
    if (entry.pod_uid == pod.uid && entry.status.phase == "Evicting") {
      entry.status.phase = "Evicted";
    }
  }
}

void Migrations::bound(const api::Pod& pod) {
  if (pod.owner == nullptr || pod.node_name.empty()) return;
  const bool matched = std::any_of(entries_.begin(), entries_.end(),
                                   [&](const Entry& e) { return e.replacement_uid == pod.uid; });
  if (matched) return;
  // The oldest open entry of the same owner: replacements come in the order of the evictions. The
  // API server's times are whole seconds, so one second of slack.
  for (Entry& entry : entries_) {
    if (entry.owner_uid != pod.owner->uid || !entry.status.bound_node.empty()) continue;
    if (entry.pod_uid == pod.uid) return;
    if (!pod.creation_timestamp ||
        *pod.creation_timestamp + std::chrono::seconds{1} < entry.since) {
      return;
    }
    entry.status.bound_node = pod.node_name;
    entry.status.phase = "Bound";
    entry.replacement_uid = pod.uid;
    return;
  }
}

std::vector<api::MigrationStatus> Migrations::list(
    const std::string& policy, const std::vector<api::MigrationStatus>& standing,
    std::size_t limit) const {
  std::vector<api::MigrationStatus> out;
  std::set<std::pair<std::string, std::string>> seen;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && out.size() < limit; ++entry) {
    if (entry->policy != policy) continue;
    if (seen.emplace(entry->status.namespace_name, entry->status.pod_name).second) {
      out.push_back(entry->status);
    }
  }
  for (const api::MigrationStatus& old : standing) {
    if (out.size() >= limit) break;
    if (seen.emplace(old.namespace_name, old.pod_name).second) out.push_back(old);
  }
  return out;
}

}  // namespace kwatt::reconcilers
