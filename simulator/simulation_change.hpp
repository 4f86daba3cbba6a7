#pragma once
// Simulation::change(); internal to simulation*.cpp.
#include "simulator/simulation.hpp"

namespace kwatt::simulator {

template <class Change>
void Simulation::change(MachineId id, Change&& what) {
  Machine& machine = machines_[id];
  Zone& zone = zones_[zone_of_[id]];
  machine.settle(now_ms_, zone.grams_per_kwh);
  const Milliwatts power = machine.power();
  const Permille speed = machine.speed();
  const std::int64_t used = machine.used().cpu.count();
  what(machine);
  zone.power += machine.power() - power;
  used_cpu_ += machine.used().cpu.count() - used;
  if (machine.speed() != speed) speed_changed(id);
}

template <class Visit>
void Simulation::each_place(const Work& work, Visit&& visit) const {
  visit(work.machine, work.gpus);
  for (const auto& [machine, gpus] : work.others) visit(machine, gpus);
}

}  // namespace kwatt::simulator
