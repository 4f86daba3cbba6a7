// Taints: a cordoned node, or one with a NoSchedule or NoExecute taint that the pod does not
// tolerate, is not for it. The words are those of kube-scheduler's TaintToleration and
// NodeUnschedulable.
#include "placement/filters/filters.hpp"
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

class Taints : public NodePlugin {
 public:
  std::string_view name() const override { return "Taints"; }
  bool filters() const override { return true; }
  Status filter(const PodInfo& pod, const NodeInfo& node, const CycleState*) const override {
    if (!filters::node_unschedulable::passes(*pod.spec, node.face)) {
      return Status::unresolvable(filters::node_unschedulable::explain(node.face));
    }
    if (!node.face.taints.empty() && !filters::taint_toleration::passes(*pod.spec, node.face)) {
      return Status::unresolvable(filters::taint_toleration::explain(*pod.spec, node.face));
    }
    return {};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_taints(const PluginSettings&) {
  return std::make_shared<Taints>();
}

}  // namespace kwatt::placement
