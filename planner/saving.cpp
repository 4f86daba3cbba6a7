#include "planner/saving.hpp"

#include <algorithm>

#include "planner/destinations.hpp"

namespace kwatt::planner {
namespace {

using std::chrono::seconds;

std::int64_t permille(std::int64_t part, std::int64_t all) {
  return all <= 0 ? 0 : part / std::max<std::int64_t>(1, all / 1000);
}

}  // namespace

Savings::Savings(const Pass& pass)
    : off_for_(std::max({pass.spec.power_off.min_off_duration, pass.spec.power_off.min_on_duration,
                         Duration{1}})) {
  loads_.reserve(pass.snapshot.nodes.size());
  for (const auto& [name, node] : pass.snapshot.nodes) {
    Load load;
    load.node = &node;
    for (const auto& pod : node.pods) {
      if (pod->terminal()) continue;
      load.requested_cpu += pod->spec->requests.cpu.count();
      load.requested_memory += pod->spec->requests.memory.count();
    }
    load.cpu = load.requested_cpu;
    if (const auto mean = window_mean(node, seconds{60}, pass.snapshot.now)) {
      load.measured = mean->utilization;
      load.cpu = node.node->allocatable.cpu.count() * mean->utilization.count() / 1000;
    }
    loads_.emplace(name, load);
  }
  for (const NodeName& name : pass.selected) {
    const auto at = loads_.find(name);
    if (at == loads_.end() || !counts_as_awake(*at->second.node)) continue;
    total_power_ += power(at->second, 0);
    total_disruption_ += 1 + static_cast<std::int64_t>(workload_count(*at->second.node));
  }
}

Milliwatts Savings::power(const Load& load, std::int64_t extra_cpu) const {
  const std::int64_t all = std::max<std::int64_t>(1, load.node->node->allocatable.cpu.count());
  return load.node->model.curve.at(Permille{(load.cpu + extra_cpu) * 1000 / all});
}

Milliwatts Savings::at_most(const NodeView& node) const {
  const models::PowerModel& model = node.model;
  const std::int64_t switching = model.boot_energy.count() + model.shutdown_energy.count();
  return power(loads_.at(node.name()), 0) - Milliwatts{switching * 1000 / off_for_.count()};
}

Milliwatts Savings::saving(const NodeView& node, const Drained& drained) const {
  const Load& from = loads_.at(node.name());
  Milliwatts saving = at_most(node);
  for (const auto& [destination, requests] : drained.to) {
    // Pods that request nothing are taken to use nothing: there is no better guess.
    const std::int64_t extra =
        from.requested_cpu <= 0 ? 0 : from.cpu * requests.cpu.count() / from.requested_cpu;
    const Load& to = loads_.at(destination);
    saving -= power(to, extra) - power(to, 0);
  }
  return saving;
}

std::int64_t Savings::score(Milliwatts saving, std::size_t pods) const {
  const std::int64_t disruption = 1 + static_cast<std::int64_t>(pods);
  const std::int64_t total = std::max<std::int64_t>(1, total_power_.count());
  return saving.count() * 100 / disruption * total_disruption_ / total;
}

Permille Savings::utilization(const NodeView& node) const {
  const Load& load = loads_.at(node.name());
  const api::Resources& all = node.node->allocatable;
  std::int64_t used = std::max(permille(load.requested_cpu, all.cpu.count()),
                               permille(load.requested_memory, all.memory.count()));
  if (load.measured) used = std::max(used, load.measured->count());
  return Permille{used};
}

}  // namespace kwatt::planner
