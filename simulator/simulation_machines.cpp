// What happens to machines: power, frequency, the carbon of their electricity.
#include <algorithm>

#include "simulator/simulation_change.hpp"

namespace kwatt::simulator {
namespace {

constexpr Duration kDay = std::chrono::hours{24};
constexpr std::int64_t kForecastDays = 2;

}  // namespace

Duration Simulation::until_ready(MachineId id) const {
  const MachineState state = machines_[id].state();
  const bool changing = state == MachineState::booting || state == MachineState::stopping;
  return changing ? Duration{ready_ms_[id] - now_ms_} : Duration{0};
}

void Simulation::boot(MachineId id) {
  if (machines_[id].state() != MachineState::off) return;
  change(id, [](Machine& machine) { machine.begin_boot(); });
  ++machines_on_;
  ready_ms_[id] = now_ms_ + specs_[id].power.boot.count();
  push(ready_ms_[id], Kind::machine_up, id);
  set_cluster_state(id);
}

void Simulation::shut_down(MachineId id) {
  if (machines_[id].state() != MachineState::on || machines_[id].tasks() > 0) return;
  change(id, [](Machine& machine) { machine.begin_shutdown(); });
  --machines_on_;
  ready_ms_[id] = now_ms_ + specs_[id].power.shutdown.count();
  push(ready_ms_[id], Kind::machine_down, id);
  set_cluster_state(id);
}

void Simulation::machine_up(MachineId id) {
  change(id, [](Machine& machine) { machine.end_boot(); });
  set_cluster_state(id);
  note_idle(id);
  want_decision(now_ms_);
}

void Simulation::machine_down(MachineId id) {
  change(id, [](Machine& machine) { machine.end_shutdown(); });
  set_cluster_state(id);
  want_decision(now_ms_);
}

void Simulation::set_open(MachineId id, bool open) {
  if ((open_[id] != 0) == open) return;
  open_[id] = open ? 1 : 0;
  set_cluster_state(id);
  if (open) want_decision(now_ms_);
}

void Simulation::set_cluster_state(MachineId id) {
  using strategies::NodeState;
  NodeState state = NodeState::unavailable;
  switch (machines_[id].state()) {
    case MachineState::on:
      state = NodeState::awake;
      break;
    case MachineState::booting:
      state = NodeState::booting;
      break;
    case MachineState::off:
      // Under a controller nobody else wakes a machine.
      state = controller_ == nullptr ? NodeState::off : NodeState::unavailable;
      break;
    case MachineState::stopping:
      break;
  }
  if (open_[id] == 0) state = NodeState::unavailable;
  cluster_.set_state(id, state, settings_.start + Duration{ready_ms_[id]});
}

void Simulation::note_idle(MachineId id) {
  if (!settings_.idle_off_after || machines_[id].tasks() > 0 ||
      machines_[id].state() != MachineState::on) {
    return;
  }
  push(now_ms_ + settings_.idle_off_after->count(), Kind::idle_off, id, ++idle_generation_[id]);
}

void Simulation::idle_off(MachineId id, std::uint32_t generation) {
  if (generation != idle_generation_[id] || machines_[id].tasks() > 0 ||
      machines_[id].state() != MachineState::on) {
    return;
  }
  if (machines_on_ > settings_.min_awake) {
    shut_down(id);
  } else {
    push(now_ms_ + std::max<std::int64_t>(60'000, settings_.idle_off_after->count()),
         Kind::idle_off, id, generation);
  }
}

void Simulation::limit_frequency(MachineId id, std::int64_t mhz) {
  change(id, [&](Machine& machine) { machine.limit_frequency(mhz); });
}

void Simulation::cap(MachineId id, std::int64_t watts) {
  change(id, [&](Machine& machine) { machine.cap(watts); });
}

void Simulation::speed_changed(MachineId id) {
  for (const WorkId work : on_machine_[id]) {
    const Work::Phase phase = work_[work].phase;
    const bool runs = phase == Work::Phase::running || phase == Work::Phase::leaving;
    if (!work_[work].service && runs && work_[work].started_ms >= 0) reschedule(work);
  }
}

void Simulation::intensity_changed(std::uint32_t index) {
  Zone& zone = zones_[index];
  for (const MachineId id : zone.machines) machines_[id].settle(now_ms_, zone.grams_per_kwh);
  zone.grams_per_kwh = zone.series->at(now());
  make_forecast(zone);
  forecasts_[index] = {now(), zone.series->step, zone.forecast};
  const TimePoint next = zone.series->next_change(now());
  if (next != TimePoint::max()) push((next - settings_.start).count(), Kind::intensity, index);
  seen_ = 0;  // those who wait for carbon may have a new reason
  if (queued_jobs_ > 0) want_decision(now_ms_);
}

void Simulation::make_forecast(Zone& zone) const {
  const Intensity& series = *zone.series;
  zone.forecast.clear();
  const std::int64_t count =
      series.grams_per_kwh.size() < 2 ? 1 : kForecastDays * kDay / series.step;
  for (std::int64_t i = 0; i < count; ++i) {
    TimePoint at = now() + series.step * i;
    if (settings_.forecast == Forecast::yesterday) {
      while (at > now()) at -= kDay;
      if (at < series.start) at = now();
    }
    zone.forecast.push_back(series.at(at));
  }
}

}  // namespace kwatt::simulator
