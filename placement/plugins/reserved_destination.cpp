// ReservedDestination: the replacement of a pod that a plan moved goes where the plan keeps room
// for it. Skipped when none of the nodes does.
#include <algorithm>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

class ReservedDestination : public NodePlugin {
 public:
  std::string_view name() const override { return "ReservedDestination"; }
  bool scores() const override { return true; }
  Status pre_score(const PodInfo& pod, NodeTargets feasible,
                   std::unique_ptr<CycleState>&) const override {
    const bool any = std::any_of(feasible.begin(), feasible.end(), [&](const NodeInfo* node) {
      return !node->reserved.empty() && reservation_for(pod, *node) != nullptr;
    });
    return any ? Status{} : Status::skip("no room is reserved for this pod");
  }
  Status score(const PodInfo& pod, const NodeInfo& node, const CycleState*,
               std::int64_t& out) const override {
    out = reservation_for(pod, node) != nullptr ? 1 : 0;
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    for (std::int64_t& score : scores) score = score == 0 ? range.least : range.most;
    return {};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_reserved_destination(const PluginSettings&) {
  return std::make_shared<ReservedDestination>();
}

}  // namespace kwatt::placement
