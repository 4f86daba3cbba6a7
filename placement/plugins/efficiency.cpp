// Efficiency: how much work a node does for its energy. Operations per joule as its owner measured
// them, if they are known of all nodes; else, for all, the most CPU per watt its curve offers
// (millicores per kilowatt at its best load). The most efficient node is best.
#include <algorithm>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

struct Basis : CycleState {
  bool measured = false;
};

// Millicores per kilowatt at the load where that is most. Quotients are compared by products: this
// is asked of thousands of nodes for one pod, and a division costs as much as ten products.
std::int64_t best_cpu_per_power(const NodeInfo& node) {
  const auto& points = node.model.curve.points;
  std::int64_t load = 0, milliwatts = 1;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto tenths = static_cast<std::int64_t>(i);
    const std::int64_t power = points[i].count();
    if (power > 0 && tenths * milliwatts > load * power) {
      load = tenths;
      milliwatts = power;
    }
  }
  return node.full_load().count() * load * 100'000 / milliwatts;
}

class Efficiency : public NodePlugin {
 public:
  std::string_view name() const override { return "Efficiency"; }
  bool scores() const override { return true; }
  Status pre_score(const PodInfo&, NodeTargets feasible,
                   std::unique_ptr<CycleState>& state) const override {
    auto basis = std::make_unique<Basis>();
    basis->measured = std::all_of(feasible.begin(), feasible.end(), [](const NodeInfo* node) {
      return node->ops_per_joule.has_value() && *node->ops_per_joule > 0;
    });
    state = std::move(basis);
    return {};
  }
  Status score(const PodInfo&, const NodeInfo& node, const CycleState* state,
               std::int64_t& out) const override {
    out =
        static_cast<const Basis*>(state)->measured ? *node.ops_per_joule : best_cpu_per_power(node);
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    normalize_min_max(range, scores, false);
    return {};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_efficiency(const PluginSettings&) {
  return std::make_shared<Efficiency>();
}

}  // namespace kwatt::placement
