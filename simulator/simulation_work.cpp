// What happens to work: it comes, waits, is placed, runs, is moved and ends.
#include <algorithm>

#include <fmt/format.h>

#include "simulator/simulation_change.hpp"

namespace kwatt::simulator {
namespace {

strategies::Request request_of(const Amount& need) {
  return {need.cpu, need.memory, need.gpu_milli};
}

// Why no cluster can take it, whatever its machines; "" if nothing speaks against it.
std::string impossible(const Job& job) {
  if (job.need.cpu <= Millicores{0} || job.need.memory < Bytes{0} || job.need.gpu_milli < 0) {
    return "its CPU must be above 0, memory and GPUs not negative";
  }
  if (job.duration <= Duration{0}) return "its duration must be above 0";
  if (job.tasks < 1) return "it must have at least one task";
  if (job.need.gpu_milli > 1000 && job.need.gpu_milli % 1000 != 0) {
    return "more than one GPU must be whole GPUs";
  }
  return {};
}

}  // namespace

std::vector<WorkId> Simulation::queued() const {
  std::vector<WorkId> ids;
  for (std::size_t i = head_; i < queue_.size(); ++i) {
    ids.push_back(static_cast<WorkId>(queue_[i].id));
  }
  return ids;
}

WorkId Simulation::new_work() {
  if (free_work_.empty()) {
    work_.emplace_back();
    return static_cast<WorkId>(work_.size() - 1);
  }
  const WorkId id = free_work_.back();
  free_work_.pop_back();
  // The generation goes on, so that events of the former work are not taken for this one's.
  const std::uint32_t generation = work_[id].generation + 1;
  work_[id] = Work{};
  work_[id].generation = generation;
  return id;
}

bool Simulation::ever_fits(const strategies::Job& job) const {
  std::int64_t room = 0;
  for (MachineId id = 0; id < machines_.size(); ++id) {
    room += cluster_.most_members(id, job.request);
    if (room >= job.members) return true;
  }
  return false;
}

void Simulation::reject(Work& work, std::string reason) {
  ++outcome_.rejected;
  if (work.job.deadline) ++outcome_.deadline_misses;
  if (outcome_.refused.size() < Outcome::kNamed) {
    outcome_.refused.push_back({work.name, std::move(reason)});
  }
}

void Simulation::arrive(Job&& job) {
  ++arrivals_;
  ++outcome_.submitted;
  if (job.deadline) ++outcome_.with_deadline;
  const WorkId id = new_work();
  Work& work = work_[id];
  work.name = std::move(job.name);
  job.name.clear();
  work.job = std::move(job);
  work.serial = arrivals_;
  std::string why = impossible(work.job);
  if (why.empty()) {
    const strategies::Job asked{.request = request_of(work.job.need),
                                .members = static_cast<std::uint32_t>(work.job.tasks)};
    if (!ever_fits(asked)) {
      why = fmt::format("{} × {} millicores, {} bytes and {} GPUs fit on no machine, even empty",
                        work.job.tasks, work.job.need.cpu.count(), work.job.need.memory.count(),
                        static_cast<double>(work.job.need.gpu_milli) / 1000);
    }
  }
  if (!why.empty()) {
    reject(work, std::move(why));
    free_work_.push_back(id);
    return;
  }
  work.left = work.job.duration.count() * 1000;
  enqueue(id);
}

void Simulation::enqueue(WorkId id) {
  Work& work = work_[id];
  work.phase = Work::Phase::queued;
  work.queued_ms = now_ms_;
  strategies::Job job;
  job.id = id;
  job.request = request_of(work.job.need);
  job.members = static_cast<std::uint32_t>(work.job.tasks);
  job.arrival = now();
  job.expected = work.service ? Duration{0} : work.job.duration;
  if (work.job.deadline) job.deadline = settings_.start + *work.job.deadline;
  // What was evicted, or is no job, is not held back on purpose.
  job.latest_start = work.service || work.was_evicted ? now() : now() + settings_.max_delay;
  queue_.push_back(job);
  if (!work.service) ++queued_jobs_;
  want_decision(now_ms_);
}

void Simulation::want_decision(std::int64_t at) {
  if (queue_.size() == head_) return;
  const std::int64_t every = settings_.decide_every.count();
  if (every > 0) at = (at + every - 1) / every * every;
  if (decide_at_ >= now_ms_ && decide_at_ <= at) return;
  decide_at_ = at;
  push(at, Kind::decide);
}

// Takes the marked ones among `count` jobs from `first` on out of the queue, in which the others
// keep their order. `gone` belongs to them.
void Simulation::take_out(std::size_t first, std::size_t count,
                          const std::vector<std::uint8_t>& gone) {
  std::size_t to = first + count;
  for (std::size_t i = count; i-- > 0;) {
    if (gone[i] == 0) queue_[--to] = queue_[first + i];
  }
  // Jobs before `first` come after the gap.
  const std::size_t gap = to - first;
  for (std::size_t i = first; i-- > head_;) queue_[i + gap] = queue_[i];
  head_ += gap;
  if (head_ == queue_.size()) {
    queue_.clear();
    head_ = 0;
  } else if (head_ > 4096 && head_ > queue_.size() / 2) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
}

// Work that knows where it goes is sent there before anybody else is asked.
void Simulation::grant_wishes() {
  if (wishes_ == 0) return;
  const std::size_t count = queue_.size() - head_;
  std::vector<std::uint8_t> gone(count, 0);
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<WorkId>(queue_[head_ + i].id);
    const auto wants = work_[id].wants;
    if (!wants || !cluster_.fits(*wants, queue_[head_ + i].request)) continue;
    strategies::Assignment to{.node = *wants};
    to.gpus = cluster_.start(*wants, queue_[head_ + i].request);
    gone[i] = 1;
    any = true;
    assign(id, {&to, 1});
  }
  if (!any) return;
  take_out(head_, count, gone);
  seen_ = 0;
}

void Simulation::decide() {
  decide_at_ = -1;
  grant_wishes();
  const std::size_t count = std::min(settings_.window, queue_.size() - head_);
  if (count == 0) return;
  ++outcome_.decisions;
  strategies::Batch batch;
  batch.jobs = {queue_.data() + head_, count};
  batch.now = now();
  batch.forecasts = forecasts_;
  if (now() >= carbon_at_) {
    seen_ = 0;
    carbon_at_ = TimePoint::max();
  }
  batch.seen = std::min(seen_, count);
  strategy_->decide(batch, cluster_, decision_);
  std::vector<std::uint8_t> gone(count, 0);
  for (std::size_t i = 0; i < decision_.assigned.size();) {
    const std::uint32_t job = decision_.assigned[i].job;
    std::size_t end = i;
    while (end < decision_.assigned.size() && decision_.assigned[end].job == job) ++end;
    gone[job] = 1;
    assign(static_cast<WorkId>(batch.jobs[job].id), {decision_.assigned.data() + i, end - i});
    i = end;
  }
  for (const strategies::Waiting& waiting : decision_.waiting) {
    const bool held = waiting.reason == strategies::Waits::waits_for_carbon;
    work_[static_cast<WorkId>(batch.jobs[waiting.job].id)].held = held;
    if (!held) continue;
    if (waiting.not_before > now()) carbon_at_ = std::min(carbon_at_, waiting.not_before);
  }
  seen_ = count;
  if (!decision_.assigned.empty()) {
    seen_ = static_cast<std::size_t>(std::count(gone.begin(), gone.end(), 0));
    take_out(head_, count, gone);
    // Those behind the window move up.
    if (queue_.size() - head_ > seen_) want_decision(now_ms_);
  }
  if (carbon_at_ != TimePoint::max()) want_decision((carbon_at_ - settings_.start).count());
}

void Simulation::assign(WorkId id, std::span<const strategies::Assignment> members) {
  Work& work = work_[id];
  work.phase = Work::Phase::starting;
  work.machine = members.front().node;
  work.gpus = members.front().gpus;
  work.others.clear();
  for (const strategies::Assignment& member : members.subspan(1)) {
    work.others.emplace_back(member.node, member.gpus);
  }
  if (work.wants) --wishes_;
  work.wants.reset();
  if (!work.service) --queued_jobs_, ++running_jobs_;
  std::int64_t ready = now_ms_;
  for (const strategies::Assignment& member : members) {
    const MachineId machine = member.node;
    change(machine, [&](Machine& m) { m.reserve(work.job.need); });
    on_machine_[machine].push_back(id);
    ++idle_generation_[machine];
    boot(machine);
    if (machines_[machine].state() == MachineState::booting) {
      ready = std::max(ready, ready_ms_[machine]);
    }
  }
  if (work.was_evicted) {
    ready += settings_.pod_start.count();
    if (work.service && settings_.migration_bytes_per_second > 0) {
      ready += work.job.need.memory.count() * 1000 / settings_.migration_bytes_per_second;
    }
  }
  if (ready == now_ms_) {
    begin(id);
  } else {
    push(ready, Kind::work_start, id, ++work.generation);
  }
}

void Simulation::begin(WorkId id) {
  Work& work = work_[id];
  if (work.service) account(work.service_index);
  work.phase = Work::Phase::running;
  work.started_ms = work.touched_ms = progress_ms_ = now_ms_;
  if (work.service) {
    ServiceState& state = service_states_[work.service_index];
    state.begun = true;
    work.busy = state.want;
  } else {
    work.busy = Millicores{work.job.need.cpu.count() * work.job.usage.count() / 1000};
  }
  each_place(work, [&](MachineId machine, strategies::GpuSet) {
    const Millicores jobs = work.service ? Millicores{0} : work.busy;
    change(machine, [&](Machine& m) { m.change_busy(jobs, work.busy - jobs); });
    if (on_started_) {
      on_started_({now(), work.name, specs_[machine].name, strategy_->name(), intensity(machine)});
    }
  });
  if (!work.service) reschedule(id);
}

void Simulation::touch(Work& work) {
  work.left -= work.speed * (now_ms_ - work.touched_ms);
  work.touched_ms = now_ms_;
}

void Simulation::reschedule(WorkId id) {
  Work& work = work_[id];
  touch(work);
  std::int64_t speed = 1000;
  each_place(work, [&](MachineId machine, strategies::GpuSet) {
    speed = std::min(speed, machines_[machine].speed().count());
  });
  work.speed = speed;
  if (work.phase == Work::Phase::leaving) return;  // it will not end here
  push(now_ms_ + std::max<std::int64_t>(0, (work.left + speed - 1) / speed), Kind::job_end, id,
       ++work.generation);
}

// Gives back all room and load of work that is on machines.
void Simulation::free_places(WorkId id) {
  Work& work = work_[id];
  const bool counts = work.started_ms >= 0;
  each_place(work, [&](MachineId machine, strategies::GpuSet gpus) {
    auto& here = on_machine_[machine];
    here.erase(std::find(here.begin(), here.end(), id));
    cluster_.finish(machine, request_of(work.job.need), gpus);
  });
  each_place(work, [&](MachineId machine, strategies::GpuSet) {
    const Millicores busy = counts ? work.busy : Millicores{0};
    const Millicores jobs = work.service ? Millicores{0} : busy;
    change(machine, [&](Machine& m) {
      m.change_busy(-jobs, jobs - busy);
      m.release(work.job.need);
    });
    note_idle(machine);
  });
  work.speed = 0;
  work.started_ms = -1;
  ++work.generation;
}

void Simulation::finish_job(WorkId id) {
  Work& work = work_[id];
  const std::int64_t waited = work.started_ms - work.job.arrival.count();
  free_places(id);
  progress_ms_ = now_ms_;
  --running_jobs_;
  ++outcome_.completed;
  outcome_.waiting.add(waited);
  outcome_.turnaround.add(now_ms_ - work.job.arrival.count());
  outcome_.makespan = elapsed();
  if (work.job.deadline && now_ms_ > work.job.deadline->count()) ++outcome_.deadline_misses;
  work.phase = Work::Phase::gone;
  free_work_.push_back(id);
  want_decision(now_ms_);
}

void Simulation::evict(WorkId id, std::optional<MachineId> to) {
  Work& work = work_[id];
  if (work.phase != Work::Phase::running && work.phase != Work::Phase::starting) return;
  if (!work.service && work.started_ms >= 0) {
    touch(work);
    if (work.left <= work.speed * settings_.stop.count()) return;  // it ends before it must go
  }
  work.phase = Work::Phase::leaving;
  if (work.job.tasks == 1) work.wants = to;  // a gang goes where all of it finds room
  push(now_ms_ + settings_.stop.count(), Kind::evicted, id, ++work.generation);
}

void Simulation::leave(WorkId id) {
  Work& work = work_[id];
  if (work.service) account(work.service_index);
  if (!work.service && work.started_ms >= 0) {
    touch(work);
    const auto done = static_cast<double>(work.job.duration.count() * 1000 - work.left) / 1000;
    outcome_.lost_core_hours += done / 3.6e6 * static_cast<double>(work.job.need.cpu.count()) /
                                1000 * static_cast<double>(work.job.tasks);
    work.left = work.job.duration.count() * 1000;
  }
  free_places(id);
  if (!work.service) --running_jobs_;
  ++outcome_.migrations;
  work.was_evicted = true;
  if (work.wants) ++wishes_;
  enqueue(id);
}

}  // namespace kwatt::simulator
