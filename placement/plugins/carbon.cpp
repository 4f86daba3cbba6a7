// Carbon: what the pod would emit there, in micrograms of CO2 an hour: milliwatts of increase times
// grams per kWh. Skipped where it says no more than EnergyIncrease: no intensity is known, or all
// are the same. A node whose intensity is not known counts as the dirtiest one that is.
#include <algorithm>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

struct Dirtiest : CycleState {
  std::int64_t grams = 0;
};

class Carbon : public NodePlugin {
 public:
  explicit Carbon(EnergySettings settings) : settings_(settings) {}
  std::string_view name() const override { return "Carbon"; }
  std::string_view unit() const override { return "ug/h"; }
  bool scores() const override { return true; }
  Status pre_score(const PodInfo&, NodeTargets feasible,
                   std::unique_ptr<CycleState>& state) const override {
    auto dirtiest = std::make_unique<Dirtiest>();
    const auto& first = feasible.front()->grams_per_kwh;
    bool alike = true;
    for (const NodeInfo* node : feasible) {
      if (node->grams_per_kwh) dirtiest->grams = std::max(dirtiest->grams, *node->grams_per_kwh);
      alike = alike && node->grams_per_kwh == first;
    }
    if (alike) {
      return Status::skip(first ? "the electricity of all nodes is alike"
                                : "no carbon intensity is known");
    }
    state = std::move(dirtiest);
    return {};
  }
  Status score(const PodInfo& pod, const NodeInfo& node, const CycleState* state,
               std::int64_t& out) const override {
    const std::int64_t grams =
        node.grams_per_kwh.value_or(static_cast<const Dirtiest*>(state)->grams);
    const std::int64_t watts = increase(node, pod.expected, settings_).watts.count();
    if (__builtin_mul_overflow(watts, grams, &out)) {
      return Status::error("the carbon intensity is beyond any that exists");
    }
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    normalize_costs(range, scores, kSmooth);
    return {};
  }

 private:
  static constexpr std::int64_t kSmooth = 100'000;  // a tenth of a gram an hour
  EnergySettings settings_;
};

}  // namespace

std::shared_ptr<const NodePlugin> make_carbon(const PluginSettings& settings) {
  return std::make_shared<Carbon>(settings.energy);
}

}  // namespace kwatt::placement
