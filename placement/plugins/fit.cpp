// Fit: cpu, memory, ephemeral storage, pod count and extended resources. Room that a plan reserved
// for this pod's arrival is free for it, and for nobody else.
#include "placement/filters/filters.hpp"
#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

namespace fits = filters::node_resources_fit;

// The node's extended resources are asked for by name only if the pod wants some.
struct Need : CycleState {
  api::Resources resources;
};

api::Resources free_of(const PodInfo& pod, const NodeInfo& node) {
  api::Resources free = node.allocatable;
  const auto take = [&free](const api::Resources& part, std::int64_t sign) {
    free.cpu -= part.cpu * sign;
    free.memory -= part.memory * sign;
    free.ephemeral_storage -= part.ephemeral_storage * sign;
    free.pods -= part.pods * sign;
    for (const auto& [name, count] : part.extended) free.extended[name] -= count * sign;
  };
  take(node.requested, 1);
  if (const Reservation* room = reservation_for(pod, node)) {
    take(room->need, -1);
    if (room->need.pods == 0) ++free.pods;  // a reservation is for one pod, whatever it says
  }
  return free;
}

class Fit : public NodePlugin {
 public:
  std::string_view name() const override { return "Fit"; }
  bool filters() const override { return true; }
  Status pre_filter(const PodInfo& pod, NodeTargets,
                    std::unique_ptr<CycleState>& state) const override {
    if (filters::scheduling_gates::passes(*pod.spec)) {
      auto need = std::make_unique<Need>();
      need->resources = pod.spec->requests;
      need->resources.pods = 1;
      state = std::move(need);
      return {};
    }
    return Status::unresolvable(filters::scheduling_gates::explain());
  }
  Status filter(const PodInfo& pod, const NodeInfo& node, const CycleState* state) const override {
    const api::Resources& need = static_cast<const Need*>(state)->resources;
    if (need.extended.empty() && plainly_fits(need, node)) return {};
    const api::Resources free = free_of(pod, node);
    const bool room_reserved = !node.reserved.empty();
    if ((room_reserved || !need.extended.empty()) && fits::passes(need, free)) return {};
    // What leaves may make room, unless the node is too small for the pod altogether.
    std::string why = fits::explain(need, free);
    return fits::passes(need, node.allocatable) ? Status::unschedulable(std::move(why))
                                                : Status::unresolvable(std::move(why));
  }

 private:
  // Without copying anything: fits even without the room reserved for it.
  static bool plainly_fits(const api::Resources& need, const NodeInfo& node) {
    const auto has = [](auto wanted, auto all, auto taken) {
      return fits::enough(wanted.count(), (all - taken).count());
    };
    return fits::enough(1, node.allocatable.pods - node.requested.pods) &&
           has(need.cpu, node.allocatable.cpu, node.requested.cpu) &&
           has(need.memory, node.allocatable.memory, node.requested.memory) &&
           has(need.ephemeral_storage, node.allocatable.ephemeral_storage,
               node.requested.ephemeral_storage);
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_fit(const PluginSettings&) {
  return std::make_shared<Fit>();
}

}  // namespace kwatt::placement
