// FrequencyAndCap: a node that runs slowly, is capped or is kept in the idle pool is chosen only if
// nothing else fits. "Nothing else" are the nodes of the same call that pass every filter. A node
// with room reserved for the pod is as good as one at full speed, whatever its state.
#include <algorithm>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

bool last_resort(const PodInfo& pod, const NodeInfo& node) {
  return (node.slow || node.capped || node.idle_pool) && reservation_for(pod, node) == nullptr;
}

std::string_view state_of(const NodeInfo& node) {
  if (node.slow) return "runs at a low frequency";
  return node.capped ? "runs under a power cap" : "is kept idle";
}

class FrequencyAndCap : public NodePlugin {
 public:
  std::string_view name() const override { return "FrequencyAndCap"; }
  bool filters() const override { return true; }
  bool narrows() const override { return true; }
  bool scores() const override { return true; }

  Status narrow(const PodInfo& pod, NodeTargets passed, const CycleState*,
                std::span<Status> refused) const override {
    const auto last = [&](const NodeInfo* node) { return last_resort(pod, *node); };
    if (std::all_of(passed.begin(), passed.end(), last)) return {};
    for (std::size_t i = 0; i < passed.size(); ++i) {
      if (!last(passed[i])) continue;
      refused[i] = Status::unschedulable("the node ");
      refused[i].reason += state_of(*passed[i]);
      refused[i].reason += ", and the pod fits elsewhere";
    }
    return {};
  }

  // For callers that score without having filtered.
  Status pre_score(const PodInfo& pod, NodeTargets feasible,
                   std::unique_ptr<CycleState>&) const override {
    const auto last = [&](const NodeInfo* node) { return last_resort(pod, *node); };
    const bool first = last(feasible.front());
    const bool alike = std::all_of(feasible.begin(), feasible.end(),
                                   [&](const NodeInfo* node) { return last(node) == first; });
    if (!alike) return {};
    return Status::skip(first ? "every node is slow, capped or kept idle"
                              : "no node is slow, capped or kept idle");
  }
  Status score(const PodInfo& pod, const NodeInfo& node, const CycleState*,
               std::int64_t& out) const override {
    out = last_resort(pod, node) ? 0 : 1;
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    for (std::int64_t& score : scores) score = score == 0 ? range.least : range.most;
    return {};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_frequency_and_cap(const PluginSettings&) {
  return std::make_shared<FrequencyAndCap>();
}

}  // namespace kwatt::placement
