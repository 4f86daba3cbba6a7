// Evictions of one operation, level-triggered: what became of a pod is read from the node, the
// results of the last round only tell whom a budget holds back.
#include <algorithm>

#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

// An eviction whose result we never saw (a crash in between) is asked for again after this.
constexpr Duration kResultLost = std::chrono::seconds{10};

const api::Pod* find_pod(const NodeView& node, const std::string& uid) {
  for (const auto& pod : node.pods) {
    if (pod->uid == uid) return pod.get();
  }
  return nullptr;
}

}  // namespace

Evictions evictions(const Context& context) {
  using Outcome = EvictionResult::Outcome;
  const TimePoint now = context.now();
  Evictions round;
  round.moves = context.operation().moves;
  round.all_accepted = true;
  for (api::PodMove& move : round.moves) {
    const api::Pod* pod = find_pod(*context.seen.node, move.uid);
    if (pod == nullptr || pod->deletion_timestamp || pod->terminal()) {
      move.phase = "Evicted";
      move.next_attempt.reset();
      continue;
    }
    const auto& results = context.seen.evictions;
    const auto result = std::find_if(results.begin(), results.end(),
                                     [&](const EvictionResult& r) { return r.uid == move.uid; });
    if (result != results.end()) {
      if (result->outcome == Outcome::accepted) {
        move.phase = "Evicted";
        move.next_attempt.reset();
        continue;
      }
      move.next_attempt = now + (result->outcome == Outcome::blocked_by_budget
                                     ? context.spec.migration.eviction_retry
                                     : kResultLost);
      round.blocked.push_back(move.namespace_name + "/" + move.pod_name);
      if (round.why.empty()) round.why = result->message;
    }
    // Accepted earlier, and the pod does not know yet: its deletion is on the way to us.
    if (move.phase == "Evicted" && !move.next_attempt) continue;
    round.all_accepted = false;
    if (!move.next_attempt || now >= *move.next_attempt) {
      move.phase = "Evicting";
      move.next_attempt = now + kResultLost;
      round.due.push_back(move);
    }
  }
  return round;
}

}  // namespace kwatt::planner::steps
