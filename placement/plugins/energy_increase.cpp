// EnergyIncrease: watts after less watts before, in milliwatts, from the node's predictor or its
// own curve, with what waking it costs (placement/energy.hpp). The least increase is best. A node
// that serves a predictor is compared with others by their curves: both are watts of the whole
// machine.
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

// A watt more or less is within the error of any meter.
constexpr std::int64_t kSmoothMilliwatts = 1000;

class EnergyIncrease : public NodePlugin {
 public:
  explicit EnergyIncrease(EnergySettings settings) : settings_(settings) {}
  std::string_view name() const override { return "EnergyIncrease"; }
  std::string_view unit() const override { return "mW"; }
  bool scores() const override { return true; }
  Status score(const PodInfo& pod, const NodeInfo& node, const CycleState*,
               std::int64_t& out) const override {
    out = increase(node, pod.expected, settings_).watts.count();
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    normalize_costs(range, scores, kSmoothMilliwatts);
    return {};
  }

 private:
  EnergySettings settings_;
};

}  // namespace

std::shared_ptr<const NodePlugin> make_energy_increase(const PluginSettings& settings) {
  return std::make_shared<EnergyIncrease>(settings.energy);
}

}  // namespace kwatt::placement
