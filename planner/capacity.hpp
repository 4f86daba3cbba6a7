#pragma once
// Room on the policy's awake nodes, for headroom.
#include "planner/drain.hpp"
#include "planner/levers.hpp"

namespace kwatt::planner {

struct Capacity {
  std::int64_t cpu_free = 0, cpu_all = 0;        // millicores
  std::int64_t memory_free = 0, memory_all = 0;  // bytes
};

// Selected nodes that are destinations of the what-if now, with everything reserved so far.
Capacity awake_capacity(const Pass& pass);
// What this node contributes to it.
Capacity capacity_of(const Pass& pass, const NodeView& node);
// `capacity` of the awake nodes once the pods are where they move to. What moves to nodes that the
// policy does not select takes nothing of it.
Capacity after_moves(const Pass& pass, Capacity capacity, const Drained& drained);

// At least the asked share of what the awake nodes offer is free.
bool headroom_kept(const Capacity& capacity, const api::HeadroomSpec& headroom);
// "cpu 8 % and memory 12 % free, 10 % and 10 % wanted".
std::string headroom_text(const Capacity& capacity, const api::HeadroomSpec& headroom);

// Measured load of awake nodes, weighted by their cores; nodes without fresh telemetry take no
// part.
struct MeasuredLoad {
  std::int64_t busy = 0;                 // permille × millicores
  std::int64_t cpu = 0;                  // millicores
  std::optional<Permille> mean() const;  // nullopt: nothing is known
};
MeasuredLoad measured_load(const Pass& pass);                        // of all selected awake nodes
MeasuredLoad measured_load(const Pass& pass, const NodeView& node);  // of one

// Nodes that go leave the others above powerOn.highUtilizationPercent? They would be woken again.
std::optional<Verdict> overloads(const Pass& pass, const MeasuredLoad& rest);

Capacity operator+(Capacity a, const Capacity& b);
Capacity operator-(Capacity a, const Capacity& b);

}  // namespace kwatt::planner
