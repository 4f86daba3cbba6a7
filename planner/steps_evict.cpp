// Evictions of one operation, level-triggered: what became of a pod is read from the node, the
// results of the last round only tell whom a budget holds back.
#include <algorithm>

#include <fmt/format.h>

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

struct Evictions {
  std::vector<api::PodMove> moves;   // next operation.moves
  std::vector<api::PodMove> due;     // evict these now
  std::vector<std::string> blocked;  // "ns/name", held back by a budget or failing
  std::string why;                   // what the API server said about the first of them
  bool all_accepted = false;         // none is left to be asked for
};

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

}  // namespace

Step evict_round(const Context& context, api::Desired desired) {
  Evictions round = evictions(context);
  Step step = round.all_accepted ? go(context, kWaitEmpty) : stay(context, kLook);
  step.next.operation.moves = std::move(round.moves);
  if (!round.due.empty()) step.effects.push_back(EvictPods{std::move(round.due)});
  if (round.blocked.empty() || round.all_accepted) return step;
  const std::string message = fmt::format("evicting {}: {}", round.blocked.front(), round.why);
  const bool news = context.status.decision.reason != api::to_string(Reason::PDBBlocked);
  decide(step.next, desired, Reason::PDBBlocked, message, context.now());
  if (news) {
    step.reason = Reason::PDBBlocked;
    step.message = message;
  }
  return step;
}

}  // namespace kwatt::planner::steps
