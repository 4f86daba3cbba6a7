#include "simulator/simulation.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "simulator/simulation_change.hpp"

namespace kwatt::simulator {
namespace {

constexpr std::uint64_t kProgressEvery = 8192;  // events
// A queue in which nothing has begun or ended for so long, with nothing running, never will.
constexpr std::int64_t kHopelessMs = std::chrono::milliseconds{std::chrono::hours{24 * 7}}.count();

strategies::NodeSpec node_of(const MachineSpec& machine, std::size_t zone) {
  strategies::NodeSpec node;
  node.name = machine.name;
  node.capacity = {machine.capacity.cpu, machine.capacity.memory, machine.capacity.gpu_milli};
  node.zone = static_cast<std::uint16_t>(zone);
  node.power = machine.power;
  return node;
}

}  // namespace

Result<std::unique_ptr<Simulation>> Simulation::create(
    std::vector<MachineSpec> machines, std::unique_ptr<strategies::Strategy> strategy,
    Settings settings) {
  if (machines.empty()) {
    return fail(ErrorCode::invalid_argument, "there are no machines to simulate");
  }
  if (settings.window == 0 || settings.decide_every < Duration{0} || settings.min_awake < 0) {
    return fail(ErrorCode::invalid_argument,
                "the queue's window must be at least 1, and times must not be negative");
  }
  for (const auto& [name, series] : settings.intensities) {
    if (series.step <= Duration{0}) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("zone \"{}\": the step of a series must be above 0", name));
    }
  }
  std::set<std::string> zones;
  for (const MachineSpec& machine : machines) zones.insert(machine.zone);
  std::vector<strategies::NodeSpec> nodes;
  for (const MachineSpec& machine : machines) {
    if (machine.min_mhz <= 0 || machine.max_mhz < machine.min_mhz) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("machine {}: frequencies must be above 0, the least at most the "
                              "greatest",
                              machine.name));
    }
    nodes.push_back(node_of(
        machine, static_cast<std::size_t>(std::distance(zones.begin(), zones.find(machine.zone)))));
  }
  auto cluster = strategies::Cluster::create(std::move(nodes));
  if (!cluster) return cluster.error();
  return std::unique_ptr<Simulation>(new Simulation(std::move(machines), std::move(strategy),
                                                    std::move(*cluster), std::move(settings)));
}

Simulation::Simulation(std::vector<MachineSpec> machines,
                       std::unique_ptr<strategies::Strategy> strategy, strategies::Cluster cluster,
                       Settings settings)
    : settings_(std::move(settings)),
      specs_(std::move(machines)),
      ready_ms_(specs_.size(), 0),
      open_(specs_.size(), 1),
      idle_generation_(specs_.size(), 0),
      on_machine_(specs_.size()),
      cluster_(std::move(cluster)),
      strategy_(std::move(strategy)) {
  outcome_.start = settings_.start;
  for (MachineId id = 0; id < specs_.size(); ++id) {
    machines_.emplace_back(specs_[id]);
    const std::size_t zone = cluster_.node(id).zone;
    zone_of_.push_back(static_cast<std::uint32_t>(zone));
    if (zone >= zones_.size()) zones_.resize(zone + 1);
    zones_[zone].name = specs_[id].zone;
    zones_[zone].machines.push_back(id);
    zones_[zone].power += machines_[id].power();
    if (!specs_[id].starts_off) ++machines_on_;
  }
  forecasts_.resize(zones_.size());
  for (std::uint32_t i = 0; i < zones_.size(); ++i) {
    zones_[i].series = &intensity_of(settings_.intensities, zones_[i].name);
    intensity_changed(i);
  }
  for (MachineId id = 0; id < specs_.size(); ++id) {
    set_cluster_state(id);
    note_idle(id);
  }
}

Simulation::~Simulation() = default;

void Simulation::set_controller(std::unique_ptr<Controller> controller) {
  controller_ = std::move(controller);
  for (MachineId id = 0; id < specs_.size(); ++id) set_cluster_state(id);
  push(now_ms_, Kind::control);
}

Result<void> Simulation::add(std::vector<Service> services) {
  for (Service& service : services) {
    const bool ends = service.end.has_value();
    if (service.arrival < Duration{0} || service.step <= Duration{0} ||
        (ends && *service.end <= service.arrival)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("service {}: it must begin at 0 or later and end after that, with a "
                              "step above 0",
                              service.name));
    }
    const bool known =
        !service.on || std::any_of(specs_.begin(), specs_.end(),
                                   [&](const auto& one) { return one.name == *service.on; });
    if (!known) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("service {}: there is no machine {}", service.name, *service.on));
    }
    const auto index = static_cast<std::uint32_t>(services_.size());
    push(service.arrival.count(), Kind::service_sample, index);
    if (ends) {
      push(service.end->count(), Kind::service_end, index);
      ++services_to_end_;
    }
    services_.push_back(std::move(service));
    service_states_.emplace_back();
    ++outcome_.services;
  }
  return {};
}

void Simulation::push(std::int64_t at, Kind kind, std::uint32_t id, std::uint32_t generation) {
  events_.push({at, kind, id, generation, event_serial_++});
}

Result<void> Simulation::pull() {
  auto next = source_->next();
  if (!next) return next.error();
  coming_ = std::move(*next);
  source_empty_ = !coming_.has_value();
  if (source_empty_) return {};
  if (coming_->arrival.count() < now_ms_) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} arrives at {} ms, before the one before it ({} ms): jobs must "
                            "be sorted by arrival",
                            coming_->name, coming_->arrival.count(), now_ms_));
  }
  push(coming_->arrival.count(), Kind::arrival);
  return {};
}

Result<void> Simulation::run(JobSource& source, std::optional<Duration> until) {
  source_ = &source;
  source_empty_ = false;
  auto done = pull();
  std::optional<std::int64_t> end;
  if (until) end = until->count();
  if (done) done = loop(end);
  source_ = nullptr;
  source_empty_ = true;
  return done;
}

Result<void> Simulation::run_until(Duration time) {
  if (time.count() <= now_ms_) return {};
  return loop(time.count());
}

bool Simulation::finished() const {
  if (!source_empty_ || services_to_end_ > 0 || running_jobs_ > 0) return false;
  return queued_jobs_ == 0 || now_ms_ - progress_ms_ > kHopelessMs;
}

Result<void> Simulation::loop(std::optional<std::int64_t> until) {
  std::uint64_t handled = 0;
  while (!events_.empty() && (until || !finished())) {
    const Event event = events_.top();
    if (until && event.at > *until) break;
    if (event.kind == Kind::arrival && source_ == nullptr) {  // of a run that was cut short
      events_.pop();
      continue;
    }
    advance(event.at);
    events_.pop();
    ++outcome_.events;
    if (auto done = handle(event); !done) return done;
    if (++handled % kProgressEvery == 0 && on_progress_ && !on_progress_(elapsed(), arrivals_)) {
      return fail(ErrorCode::cancelled, "stopped");
    }
  }
  if (until) advance(*until);
  return {};
}

Level Simulation::level() const {
  Level level;
  for (const Zone& zone : zones_) {
    const double watts = static_cast<double>(zone.power.count()) / 1000;
    level.watts += watts;
    level.grams_per_hour += watts / 1000 * zone.grams_per_kwh;
  }
  level.used_cpu = static_cast<double>(used_cpu_);
  level.machines_on = static_cast<double>(machines_on_);
  level.queued = static_cast<double>(queued_jobs_);
  return level;
}

void Simulation::advance(std::int64_t to) {
  if (to <= now_ms_) return;
  outcome_.timeline.hold(to, level());
  now_ms_ = to;
}

Result<void> Simulation::handle(const Event& event) {
  switch (event.kind) {
    case Kind::job_end:
      if (work_[event.id].generation == event.generation) finish_job(event.id);
      break;
    case Kind::evicted:
      if (work_[event.id].generation == event.generation) leave(event.id);
      break;
    case Kind::machine_up:
      machine_up(event.id);
      break;
    case Kind::machine_down:
      machine_down(event.id);
      break;
    case Kind::work_start:
      if (work_[event.id].generation == event.generation) begin(event.id);
      break;
    case Kind::intensity:
      intensity_changed(event.id);
      break;
    case Kind::service_sample:
      sample(event.id);
      break;
    case Kind::service_end:
      end_service(event.id);
      break;
    case Kind::arrival:
      arrive(std::move(*coming_));
      return pull();
    case Kind::idle_off:
      idle_off(event.id, event.generation);
      break;
    case Kind::control: {
      if (controller_ == nullptr) break;
      auto again = controller_->act(*this);
      if (!again) return again.error();
      push(now_ms_ + std::max<std::int64_t>(1, again->count()), Kind::control);
      break;
    }
    case Kind::decide:
      if (decide_at_ == event.at) decide();
      break;
  }
  return {};
}

Outcome Simulation::outcome() const {
  Outcome result = outcome_;
  result.length = elapsed();
  std::int64_t millijoules = 0;
  double busy_cpu = 0, cpu_on = 0, on_ms = 0, overload_ms = 0;
  for (MachineId id = 0; id < machines_.size(); ++id) {
    Machine machine = machines_[id];
    machine.settle(now_ms_, zones_[zone_of_[id]].grams_per_kwh);
    const MachineAccount& account = machine.account();
    millijoules += account.energy.units;
    result.grams_co2 += account.grams_co2;
    result.boots += account.boots;
    result.shutdowns += account.shutdowns;
    busy_cpu += account.cpu_ms;
    on_ms += static_cast<double>(account.on_ms);
    overload_ms += static_cast<double>(account.overload_ms);
    cpu_on +=
        static_cast<double>(account.on_ms) * static_cast<double>(specs_[id].capacity.cpu.count());
    result.nodes.push_back(
        {specs_[id].name, specs_[id].zone, specs_[id].capacity.cpu.count(), account});
  }
  result.energy_kwh = static_cast<double>(millijoules) / 3.6e9;
  result.cost = result.energy_kwh * settings_.prices.per_kwh +
                result.grams_co2 / 1e6 * settings_.prices.per_tonne_co2;
  result.on_hours = on_ms / 3.6e6;
  result.utilization = cpu_on > 0 ? busy_cpu / cpu_on : 0;
  result.slatah = on_ms > 0 && result.services > 0 ? overload_ms / on_ms : 0;
  double wanted = 0, undelivered = 0;
  for (std::uint32_t i = 0; i < service_states_.size(); ++i) {
    const ServiceWork sum = service_work(i);
    wanted += sum.wanted;
    undelivered += sum.undelivered;
  }
  result.pdm = wanted > 0 ? undelivered / wanted : 0;
  for (const Work& work : work_) {
    if (work.service && work.phase == Work::Phase::queued) ++result.services_waiting;
    if (work.phase == Work::Phase::gone || work.service) continue;
    ++result.unfinished;
    if (work.job.deadline && work.job.deadline->count() <= now_ms_) ++result.deadline_misses;
  }
  return result;
}

}  // namespace kwatt::simulator
