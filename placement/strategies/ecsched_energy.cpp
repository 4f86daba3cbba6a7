// ECSched-energy: the flow of ECSched (ecsched.cpp) with watts for costs. The units of a node cost
// what the power curve says that one more typical job adds, so that arcs to the sink are convex: a
// node is filled up to where its curve bends, then the next one. Waking a node is spread over the
// units that it offers. An arc adds what this job draws more than a typical one, and the
// fragmentation it leaves: CPU without memory or memory without CPU, at a twentieth of the node's
// full power.
//
// In watts, not milliwatts. Curves need not be convex; the units' prices never fall, so the flow
// sees the greatest price so far.
#include <algorithm>
#include <cmath>

#include "placement/strategies/all.hpp"
#include "placement/strategies/by_flow.hpp"
#include "placement/strategies/energy.hpp"

namespace kwatt::placement::strategies {
namespace {

constexpr double kMilli = 1000;
constexpr double kFragmentation = 0.05;  // of full power, for a node with one amount used up alone

class EcSchedEnergy : public ByFlow {
 public:
  explicit EcSchedEnergy(const Settings& settings) : ByFlow("ECSched-energy", settings) {}

 protected:
  double cost(const Request& request, NodeIndex i, const Cluster& cluster) const override {
    const NodeSpec& node = cluster.node(i);
    const auto left = [](std::int64_t free, std::int64_t need, std::int64_t full) {
      return full > 0 ? static_cast<double>(free - need) / static_cast<double>(full) : 0.0;
    };
    const double cpu = left(cluster.free_cpu(i), request.cpu.count(), node.capacity.cpu.count());
    const double memory =
        left(cluster.free_memory(i), request.memory.count(), node.capacity.memory.count());
    const auto full = static_cast<double>(node.power.curve.maximum().count()) / kMilli;
    const double slope = (cluster.draw_with(i, request.cpu.count()) - cluster.draw(i)) / kMilli;
    return slope + kFragmentation * full * std::abs(cpu - memory);
  }

  double price(NodeIndex i, const Cluster& cluster, std::int64_t typical, std::uint32_t k,
               std::uint32_t units) const override {
    const auto add = [&](std::uint32_t jobs) {
      return cluster.draw_with(i, typical * static_cast<std::int64_t>(jobs)) / kMilli;
    };
    // The first one's watts are in the arcs, by the job's own size.
    const double bend = (add(k + 1) - add(k)) - (add(1) - add(0));
    return bend + wake_cost(cluster, i, settings_.boot_over) / kMilli / units;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_ecsched_energy(const Settings& settings) {
  return std::make_unique<EcSchedEnergy>(settings);
}

}  // namespace kwatt::placement::strategies
