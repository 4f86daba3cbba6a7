#include "simulator/consolidation/metrics.hpp"

namespace kwatt::simulator::consolidation {

void Meter::host(std::size_t index, double time, double given, double requested, bool active) {
  HostRecord& last = hosts_[index];
  if (time > last.time && last.time >= 0) {
    if (last.active) {
      metrics.active_seconds += time - last.time;
      if (last.given < last.requested) metrics.lacking_seconds += time - last.time;
    }
    if (last.was_active && !last.active) ++metrics.shutdowns;
    if (!last.was_active && last.active) ++metrics.wakes;
    last.was_active = last.active;
  }
  last.time = time;
  last.given = given;
  last.requested = requested;
  last.active = active;
}

void Meter::vm(std::size_t index, double time, double given, double requested, bool migrating) {
  VmRecord& last = vms_[index];
  if (time > last.time && last.time >= 0) {
    const double seconds = time - last.time;
    metrics.requested_cpu_seconds += last.requested * seconds;
    if (last.given < last.requested) {
      const double lacking = (last.requested - last.given) * seconds;
      metrics.lacking_cpu_seconds += lacking;
      if (last.migrating) metrics.lacking_in_move += lacking;
    }
  }
  last = {time, given, requested, migrating};
}

void Meter::finish() {
  for (HostRecord& last : hosts_) {
    if (last.was_active && !last.active) ++metrics.shutdowns;
    if (!last.was_active && last.active) ++metrics.wakes;
    last.was_active = last.active;
  }
}

}  // namespace kwatt::simulator::consolidation
