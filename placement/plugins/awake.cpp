// Awake: only nodes that run. Left out of a profile where nodes may be woken for a pod: then
// EnergyIncrease charges what waking them costs.
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

class Awake : public NodePlugin {
 public:
  std::string_view name() const override { return "Awake"; }
  bool filters() const override { return true; }
  Status filter(const PodInfo&, const NodeInfo& node, const CycleState*) const override {
    return node.awake ? Status{} : Status::unresolvable("the node is not on");
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_awake(const PluginSettings&) {
  return std::make_shared<Awake>();
}

}  // namespace kwatt::placement
