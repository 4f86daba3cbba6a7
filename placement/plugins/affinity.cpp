// Affinity: the pod's nodeSelector and required node affinity. Skipped for a pod that has neither.
#include "placement/filters/filters.hpp"
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

class Affinity : public NodePlugin {
 public:
  std::string_view name() const override { return "Affinity"; }
  bool filters() const override { return true; }
  Status pre_filter(const PodInfo& pod, NodeTargets, std::unique_ptr<CycleState>&) const override {
    const bool any = !pod.spec->node_selector.empty() || !pod.spec->required_node_affinity.empty();
    return any ? Status{} : Status::skip();
  }
  Status filter(const PodInfo& pod, const NodeInfo& node, const CycleState*) const override {
    if (filters::node_affinity::passes(*pod.spec, *node.node)) return {};
    return Status::unresolvable(filters::node_affinity::explain(*pod.spec, *node.node));
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_affinity(const PluginSettings&) {
  return std::make_shared<Affinity>();
}

}  // namespace kwatt::placement
