#include "planner/capacity.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/destinations.hpp"

namespace kwatt::planner {
namespace {

// Percent in floating point would round differently at the edge; bytes × 100 fit 64 bits up to
// 80 PiB.
bool kept(std::int64_t free, std::int64_t all, std::int64_t percent) {
  return free * 100 >= all * percent;
}

std::int64_t percent_of(std::int64_t part, std::int64_t all) {
  return all <= 0 ? 0 : part * 100 / all;
}

}  // namespace

Capacity capacity_of(const Pass& pass, const NodeView& node) {
  Capacity c;
  c.cpu_free = pass.what_if.free_cpu(node.name()).count();
  c.cpu_all = node.node->allocatable.cpu.count();
  c.memory_free = pass.what_if.free_memory(node.name()).count();
  c.memory_all = node.node->allocatable.memory.count();
  return c;
}

Capacity awake_capacity(const Pass& pass) {
  Capacity sum;
  for (const NodeName& name : pass.selected) {
    const auto node = pass.snapshot.nodes.find(name);
    if (node == pass.snapshot.nodes.end() || !pass.what_if.is_destination(name)) continue;
    sum = sum + capacity_of(pass, node->second);
  }
  return sum;
}

Capacity after_moves(const Pass& pass, Capacity capacity, const Drained& drained) {
  for (const auto& [destination, requests] : drained.to) {
    if (!std::binary_search(pass.selected.begin(), pass.selected.end(), destination)) continue;
    capacity.cpu_free -= requests.cpu.count();
    capacity.memory_free -= requests.memory.count();
  }
  return capacity;
}

bool headroom_kept(const Capacity& capacity, const api::HeadroomSpec& headroom) {
  return kept(capacity.cpu_free, capacity.cpu_all, headroom.cpu_percent) &&
         kept(capacity.memory_free, capacity.memory_all, headroom.memory_percent);
}

std::string headroom_text(const Capacity& capacity, const api::HeadroomSpec& headroom) {
  return fmt::format("cpu {} % and memory {} % free, {} % and {} % wanted",
                     percent_of(capacity.cpu_free, capacity.cpu_all),
                     percent_of(capacity.memory_free, capacity.memory_all), headroom.cpu_percent,
                     headroom.memory_percent);
}

std::optional<Permille> MeasuredLoad::mean() const {
  return cpu <= 0 ? std::nullopt : std::optional{Permille{busy / cpu}};
}

MeasuredLoad measured_load(const Pass& pass, const NodeView& node) {
  const auto mean = window_mean(node, std::chrono::seconds{60}, pass.snapshot.now);
  if (!mean) return {};
  const std::int64_t cpu = node.node->allocatable.cpu.count();
  return {mean->utilization.count() * cpu, cpu};
}

MeasuredLoad measured_load(const Pass& pass) {
  MeasuredLoad sum;
  for (const NodeName& name : pass.selected) {
    const auto node = pass.snapshot.nodes.find(name);
    if (node == pass.snapshot.nodes.end() || !counts_as_awake(node->second)) continue;
    const MeasuredLoad load = measured_load(pass, node->second);
    sum.busy += load.busy;
    sum.cpu += load.cpu;
  }
  return sum;
}

std::optional<Verdict> overloads(const Pass& pass, const MeasuredLoad& rest) {
  const std::int64_t limit = pass.spec.power_on.high_utilization_percent;
  const auto mean = rest.mean();
  if (!mean || *mean <= percent(limit)) return std::nullopt;
  return Verdict{Reason::HighLoad,
                 fmt::format("without it the awake nodes would be at {} %, above {} %",
                             mean->count() / 10, limit)};
}

Capacity operator+(Capacity a, const Capacity& b) {
  a.cpu_free += b.cpu_free;
  a.cpu_all += b.cpu_all;
  a.memory_free += b.memory_free;
  a.memory_all += b.memory_all;
  return a;
}

Capacity operator-(Capacity a, const Capacity& b) {
  a.cpu_free -= b.cpu_free;
  a.cpu_all -= b.cpu_all;
  a.memory_free -= b.memory_free;
  a.memory_all -= b.memory_all;
  return a;
}

}  // namespace kwatt::planner
