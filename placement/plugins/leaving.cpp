// Leaving: a node that is being emptied, or held off, takes no more pods.
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

class Leaving : public NodePlugin {
 public:
  std::string_view name() const override { return "Leaving"; }
  bool filters() const override { return true; }
  Status filter(const PodInfo&, const NodeInfo& node, const CycleState*) const override {
    return node.leaving ? Status::unresolvable("the node is being emptied") : Status{};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_leaving(const PluginSettings&) {
  return std::make_shared<Leaving>();
}

}  // namespace kwatt::placement
