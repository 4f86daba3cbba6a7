#include "simulator/consolidation/world.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kwatt::simulator::consolidation {
namespace {

using planner::consolidation::Fleet;
using planner::consolidation::Host;
using planner::consolidation::HostKind;
using planner::consolidation::kNone;
using planner::consolidation::Move;
using planner::consolidation::Vm;

constexpr double kSlowdown = 0.9;     // what a VM gets of its share while it is copied
constexpr double kReservation = 0.1;  // what the target holds of it meanwhile

void erase(std::vector<std::uint32_t>& list, std::uint32_t value) {
  const auto at = std::find(list.begin(), list.end(), value);
  if (at != list.end()) list.erase(at);
}

// Share of the CPU that sets the power; sums of shares exceed 1 by rounding only.
double load(const HostKind& kind, double used) {
  return std::min(1.0, used / kind.cpu());
}

struct Interpolation {
  std::size_t before = 0, after = 0;
  double seconds = 0;  // since `before`
  bool exact = false;
};

Interpolation interpolation(double time, double step, std::size_t samples) {
  Interpolation at;
  const double low = std::floor(time / step);
  at.exact = std::fmod(time, step) == 0;
  at.before = std::min(samples - 1, static_cast<std::size_t>(low));
  at.after = std::min(samples - 1, static_cast<std::size_t>(low) + 1);
  at.seconds = time - low * step;
  return at;
}

double value(const traces::Series& series, const Interpolation& at, std::size_t column,
             double step) {
  const double first = series.at(at.before, column);
  if (at.exact) return first;
  return first + (series.at(at.after, column) - first) / step * at.seconds;
}

}  // namespace

World::World(Fleet fleet, const traces::Series& cpu, const traces::Series* memory)
    : fleet_(std::move(fleet)),
      cpu_(cpu),
      memory_(memory),
      meter_(fleet_.hosts.size(), fleet_.vms.size()),
      past_(fleet_.vms.size()),
      utilization_(fleet_.vms.size()),
      given_(fleet_.vms.size()),
      copying_(fleet_.vms.size()) {}

double World::next_event() const {
  return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time;
}

void World::want(double time) {
  if (time == wanted_) return;
  wanted_ = time;
  const double step = fleet_.step_seconds;
  const Interpolation at = interpolation(time, step, cpu_.samples);
  for (std::size_t v = 0; v < fleet_.vms.size(); ++v) {
    Vm& vm = fleet_.vms[v];
    if (vm.host == kNone) continue;
    utilization_[v] = value(cpu_, at, v, step);
    vm.demand = utilization_[v] * vm.cpu;
    if (memory_ != nullptr) vm.memory_demand = value(*memory_, at, v, step) * vm.memory;
  }
}

bool World::arrives(std::uint32_t vm, const Host& host) const {
  return !host.arriving.empty() &&
         std::find(host.arriving.begin(), host.arriving.end(), vm) != host.arriving.end();
}

// What the host gives from now on.
void World::look_at(std::size_t index, double time) {
  Host& host = fleet_.hosts[index];
  const HostKind& kind = fleet_.kind(host);
  double held = 0, memory = 0;
  for (const std::uint32_t v : host.vms) {
    const double share = std::min(fleet_.vms[v].demand, kind.core_cpu);
    const bool arriving = arrives(v, host);
    given_[v] = arriving && !copying_[v] ? 0 : share * (arriving ? kReservation : 1.0);
    held += given_[v];
    if (!arriving) memory += fleet_.vms[v].memory_demand;
  }
  const bool enough = held <= kind.cpu();
  const double scale = enough ? 1 : kind.cpu() / held;
  double used = 0, requested = 0;
  for (const std::uint32_t v : host.vms) {
    const Vm& vm = fleet_.vms[v];
    const bool arriving = arrives(v, host);
    if (arriving && !copying_[v]) continue;
    double given = enough ? given_[v] : given_[v] * scale;
    const bool leaving = copying_[v] && !arriving;
    if (leaving) given *= kSlowdown;
    if (!enough) given = std::floor(given);
    if (!arriving) meter_.vm(v, time, given, vm.demand, leaving);
    used += leaving ? given / kSlowdown : given;
    requested += vm.demand;
  }
  host.used = used;
  // A host whose memory is too small for what is wanted lacks, too.
  const bool lacks = memory > kind.memory;
  meter_.host(index, time, lacks ? 0 : used, requested, used > 0);
}

void World::look(double time) {
  want(time);
  const double seconds = time - now_;
  for (std::size_t h = 0; h < fleet_.hosts.size(); ++h) {
    const HostKind& kind = fleet_.kind(fleet_.hosts[h]);
    const double before = fleet_.hosts[h].used;
    look_at(h, time);
    if (seconds > 0 && before > 0) {
      const double first = kind.watts.at(load(kind, before));
      const double last = kind.watts.at(load(kind, fleet_.hosts[h].used));
      meter_.metrics.energy_joules += (first + (last - first) / 2) * seconds;
    }
  }
  now_ = time;
  end_idle_vms();
}

void World::end_idle_vms() {
  for (std::uint32_t v = 0; v < fleet_.vms.size(); ++v) {
    Vm& vm = fleet_.vms[v];
    if (vm.host == kNone || vm.moving || vm.demand != 0) continue;
    erase(fleet_.hosts[vm.host].vms, v);
    vm.host = kNone;
  }
}

// All that begins or ends at the time of the next event.
void World::next() {
  const double at = next_event();
  if (at > now_) look(at);
  while (next_event() == at) {
    const Event event = events_.top();
    events_.pop();
    event.ends ? land(event.move) : copy(event.move, at);
  }
  look(at);
}

void World::advance(double time) {
  while (next_event() <= time) next();
  if (time > now_) look(time);
}

void World::settle(double time) {
  while (next_event() < time) next();
}

void World::remember() {
  for (std::size_t v = 0; v < past_.size(); ++v) {
    if (fleet_.vms[v].host == kNone) continue;
    past_[v].push_back(utilization_[v]);
    fleet_.vms[v].past = past_[v];
  }
}

void World::start(const Move& move) {
  Host& host = fleet_.hosts[move.host];
  const HostKind& kind = fleet_.kind(host);
  Vm& vm = fleet_.vms[move.vm];
  ++meter_.metrics.migrations;
  const bool sleeping = host.vms.empty() && host.used == 0;
  vm.moving = true;
  if (!arrives(move.vm, host)) {
    host.arriving.push_back(move.vm);
    host.vms.push_back(move.vm);
  }
  if (!sleeping || kind.boot_seconds == 0) {
    if (sleeping) meter_.metrics.energy_joules += kind.boot_joules;
    copy(move, now_);
    return;
  }
  meter_.metrics.energy_joules += kind.boot_joules;
  events_.push({now_ + kind.boot_seconds, events_made_++, false, move});
}

void World::copy(const Move& move, double time) {
  copying_[move.vm] = true;
  look_at(move.host, time);
  look_at(fleet_.vms[move.vm].host, time);
  const double seconds =
      fleet_.vms[move.vm].memory / fleet_.kind(fleet_.hosts[move.host]).copy_per_second;
  events_.push({time + seconds, events_made_++, true, move});
}

void World::land(const Move& move) {
  Vm& vm = fleet_.vms[move.vm];
  Host& host = fleet_.hosts[move.host];
  if (vm.host != kNone) erase(fleet_.hosts[vm.host].vms, move.vm);
  erase(host.vms, move.vm);
  erase(host.arriving, move.vm);
  host.vms.push_back(move.vm);
  vm.host = move.host;
  vm.moving = false;
  copying_[move.vm] = false;
}

Metrics World::finish() {
  meter_.finish();
  return meter_.metrics;
}

}  // namespace kwatt::simulator::consolidation
