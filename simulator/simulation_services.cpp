// What happens to services: they come, want more or less, and go.
#include <algorithm>

#include "simulator/simulation_change.hpp"

namespace kwatt::simulator {

Simulation::ServiceWork Simulation::service_work(std::uint32_t index) const {
  const ServiceState& state = service_states_[index];
  ServiceWork sum = state.sum;
  if (!state.here || !state.begun) return sum;
  const double wanted =
      static_cast<double>(state.want.count()) * static_cast<double>(now_ms_ - state.since_ms);
  sum.wanted += wanted;
  const Work::Phase phase = work_[state.work].phase;
  const bool served = phase == Work::Phase::running || phase == Work::Phase::leaving;
  if (!served) sum.undelivered += wanted;
  return sum;
}

void Simulation::account(std::uint32_t index) {
  service_states_[index].sum = service_work(index);
  service_states_[index].since_ms = now_ms_;
}

void Simulation::sample(std::uint32_t index) {
  const Service& service = services_[index];
  ServiceState& state = service_states_[index];
  if (!state.here) {
    if (service.end && now_ms_ >= service.end->count()) return;
    const WorkId id = new_work();
    Work& work = work_[id];
    work.service = true;
    work.service_index = index;
    work.name = service.name;
    work.job.arrival = service.arrival;
    work.job.need = service.need;
    state.work = id;
    state.here = true;
    if (service.on) {
      const auto found = std::find_if(specs_.begin(), specs_.end(), [&](const MachineSpec& spec) {
        return spec.name == *service.on;
      });
      work.wants = static_cast<MachineId>(found - specs_.begin());
      ++wishes_;
    }
    enqueue(id);
  }
  account(index);
  const Permille share = service.use.empty() ? percent(100) : service.use[state.sample];
  const Millicores want{service.need.cpu.count() * share.count() / 1000};
  Work& work = work_[state.work];
  if (work.started_ms >= 0) {
    change(work.machine, [&](Machine& m) { m.change_busy(Millicores{0}, want - work.busy); });
    work.busy = want;
  }
  state.want = want;
  if (++state.sample < service.use.size()) {
    push(now_ms_ + service.step.count(), Kind::service_sample, index);
  }
}

void Simulation::end_service(std::uint32_t index) {
  --services_to_end_;
  ServiceState& state = service_states_[index];
  if (!state.here) return;
  account(index);
  state.here = false;
  const WorkId id = state.work;
  Work& work = work_[id];
  if (work.phase == Work::Phase::queued) {
    const std::size_t count = queue_.size() - head_;
    std::vector<std::uint8_t> gone(count, 0);
    for (std::size_t i = 0; i < count; ++i) gone[i] = queue_[head_ + i].id == id ? 1 : 0;
    if (work.wants) --wishes_;
    take_out(head_, count, gone);
    seen_ = 0;
  } else {
    free_places(id);
    want_decision(now_ms_);
  }
  work.phase = Work::Phase::gone;
  ++work.generation;
  free_work_.push_back(id);
}

}  // namespace kwatt::simulator
