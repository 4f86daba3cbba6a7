#include "planner/consolidation/steady.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kwatt::planner::consolidation {
namespace {

struct Load {
  double now = 0;   // CPU wanted
  double mean = 0;  // CPU expected
  double variance = 0;
  double memory = 0;
  Load& operator+=(const Load& other) {
    now += other.now;
    mean += other.mean;
    variance += other.variance;
    memory += other.memory;
    return *this;
  }
  Load& operator-=(const Load& other) {
    now -= other.now;
    mean -= other.mean;
    variance = std::max(0.0, variance - other.variance);
    memory -= other.memory;
    return *this;
  }
};

// One decision: loads as they will be after the moves so far.
class Decision {
 public:
  Decision(const Fleet& fleet, const SteadySettings& settings, std::uint64_t step,
           std::vector<std::uint64_t>& rests_until)
      : fleet_(fleet),
        settings_(settings),
        step_(step),
        rests_until_(rests_until),
        loads_(fleet.hosts.size()),
        vms_(fleet.hosts.size()),
        vm_loads_(fleet.vms.size()) {
    for (const HostKind& kind : fleet.kinds) best_.push_back(best_load(kind));
    for (std::uint32_t h = 0; h < fleet.hosts.size(); ++h) {
      if (fleet.hosts[h].vms.empty()) continue;
      on_.push_back(h);
      for (const std::uint32_t v : fleet.hosts[h].vms) {
        vm_loads_[v] = load_of(fleet.vms[v]);
        loads_[h] += vm_loads_[v];
        if (fleet.vms[v].host == h) vms_[h].push_back(v);
      }
    }
  }

  std::vector<Move> run() {
    const std::vector<std::uint32_t> before = on_;
    for (const std::uint32_t host : before) relieve(host);
    empty_hosts();
    return std::move(moves_);
  }

 private:
  const HostKind& kind(std::uint32_t host) const { return fleet_.kind(fleet_.hosts[host]); }
  double cpu_now(std::uint32_t host) const { return kind(host).cpu() * (1 - settings_.headroom); }

  Load load_of(const Vm& vm) const {
    const Outlook outlook = settings_.forecast(vm.past);
    const double deviation = outlook.deviation * vm.cpu;
    return {vm.demand, outlook.mean * vm.cpu, deviation * deviation, vm.memory_demand};
  }

  bool too_large(std::uint32_t vm, std::uint32_t host) const {
    return fleet_.vms[vm].demand > kind(host).core_cpu;
  }

  bool lacks(std::uint32_t host) const {
    if (loads_[host].now > cpu_now(host) || loads_[host].memory > kind(host).memory) return true;
    return std::any_of(vms_[host].begin(), vms_[host].end(),
                       [&](std::uint32_t vm) { return too_large(vm, host); });
  }

  // CPU that is still free for what is expected; negative: no room.
  std::optional<double> room(std::uint32_t vm, std::uint32_t host, double margin) const {
    const HostKind& its = kind(host);
    Load load = loads_[host];
    load += vm_loads_[vm];
    const Load& own = vm_loads_[vm];
    if (too_large(vm, host) || own.mean + margin * std::sqrt(own.variance) > its.core_cpu ||
        load.now > cpu_now(host) || load.memory > its.memory * settings_.memory_fill) {
      return std::nullopt;
    }
    const double free = std::min(its.cpu() - load.mean - margin * std::sqrt(load.variance),
                                 its.cpu() * best_[fleet_.hosts[host].kind].load - load.mean);
    if (free < 0) return std::nullopt;
    return free;
  }

  // Of the hosts that are on and not `except`.
  std::uint32_t receiver(std::uint32_t vm, std::uint32_t except, double margin) const {
    std::uint32_t found = kNone;
    double least = 0, watts = 0;
    for (const std::uint32_t host : on_) {
      if (host == except || vms_[host].empty()) continue;
      const double its_watts = best_[fleet_.hosts[host].kind].watts_per_cpu;
      if (found != kNone && its_watts > watts) continue;
      const std::optional<double> free = room(vm, host, margin);
      if (!free) continue;
      if (found == kNone || its_watts < watts || *free < least) {
        found = host;
        least = *free;
        watts = its_watts;
      }
    }
    return found;
  }

  std::uint32_t sleeper(std::uint32_t vm) const {
    std::uint32_t found = kNone;
    double least = 0;
    for (std::uint32_t host = 0; host < fleet_.hosts.size(); ++host) {
      if (!fleet_.hosts[host].vms.empty() || !vms_[host].empty()) continue;
      const BestLoad& best = best_[fleet_.hosts[host].kind];
      const double boot =
          kind(host).boot_joules / settings_.horizon_seconds / (best.load * kind(host).cpu());
      const double cost = best.watts_per_cpu + boot;
      if (found != kNone && cost >= least) continue;
      if (!room(vm, host, 0)) continue;
      found = host;
      least = cost;
    }
    return found;
  }

  void move(std::uint32_t vm, std::uint32_t from, std::uint32_t to) {
    moves_.push_back({vm, to});
    vms_[from].erase(std::find(vms_[from].begin(), vms_[from].end(), vm));
    vms_[to].push_back(vm);
    loads_[from] -= vm_loads_[vm];
    loads_[to] += vm_loads_[vm];
    rests_until_[to] = step_ + settings_.rest_steps;
    gone_.push_back(vm);
  }

  bool movable(std::uint32_t vm) const {
    return !fleet_.vms[vm].moving && std::find(gone_.begin(), gone_.end(), vm) == gone_.end();
  }

  // The VM to leave a host that lacks; kNone: none can.
  std::uint32_t leaver(std::uint32_t host) const {
    const double cpu_excess = loads_[host].now - cpu_now(host);
    const double memory_excess = loads_[host].memory - kind(host).memory;
    std::uint32_t enough = kNone, largest = kNone;
    double least = 0;
    for (const std::uint32_t vm : vms_[host]) {
      if (!movable(vm)) continue;
      const Vm& its = fleet_.vms[vm];
      if (too_large(vm, host)) return vm;
      // What it lacks while it is copied.
      const double loss = its.demand * its.memory;
      if (its.demand >= cpu_excess && its.memory_demand >= memory_excess &&
          (enough == kNone || loss < least)) {
        enough = vm;
        least = loss;
      }
      const auto size = [&](const Vm& v) { return cpu_excess > 0 ? v.demand : v.memory_demand; };
      if (largest == kNone || size(its) > size(fleet_.vms[largest])) largest = vm;
    }
    return enough != kNone ? enough : largest;
  }

  void relieve(std::uint32_t host) {
    while (lacks(host)) {
      const std::uint32_t vm = leaver(host);
      if (vm == kNone) return;
      std::uint32_t target = receiver(vm, host, settings_.margin);
      if (target == kNone) target = receiver(vm, host, 0);
      if (target == kNone) {
        target = sleeper(vm);
        if (target == kNone) return;
        on_.insert(std::upper_bound(on_.begin(), on_.end(), target), target);
      }
      move(vm, host, target);
    }
  }

  // Watts of a host that is on with so much load more (or less) than is expected.
  double watts(std::uint32_t host, double more = 0) const {
    return kind(host).watts.at((loads_[host].mean + more) / kind(host).cpu());
  }

  bool may_be_emptied(std::uint32_t host) const {
    if (vms_[host].empty() || rests_until_[host] > step_ ||
        vms_[host].size() != fleet_.hosts[host].vms.size()) {
      return false;
    }
    return std::all_of(vms_[host].begin(), vms_[host].end(),
                       [&](std::uint32_t vm) { return movable(vm); });
  }

  void empty_hosts() {
    struct Candidate {
      std::uint32_t host = kNone;
      double watts_per_move = 0;
    };
    double cheapest = best_.front().watts_per_cpu;
    for (const BestLoad& best : best_) cheapest = std::min(cheapest, best.watts_per_cpu);
    std::vector<Candidate> candidates;
    for (const std::uint32_t host : on_) {
      if (!may_be_emptied(host)) continue;
      const double saved = watts(host) - cheapest * loads_[host].mean;
      candidates.push_back({host, saved / static_cast<double>(vms_[host].size())});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.watts_per_move > b.watts_per_move;
    });
    int failures = 0;
    for (const Candidate& candidate : candidates) {
      if (!may_be_emptied(candidate.host)) continue;  // has received since
      if (empty(candidate.host)) {
        failures = 0;
      } else if (++failures == kPatience) {
        return;
      }
    }
  }

  // Moves all VMs of the host away if they find room and that repays; else nothing changes.
  bool empty(std::uint32_t host) {
    std::vector<std::uint32_t> vms = vms_[host];
    std::stable_sort(vms.begin(), vms.end(), [&](std::uint32_t a, std::uint32_t b) {
      return vm_loads_[a].mean > vm_loads_[b].mean;
    });
    std::vector<Move> planned;
    double saved = watts(host);
    for (const std::uint32_t vm : vms) {
      const std::uint32_t target = receiver(vm, host, settings_.margin);
      if (target == kNone) {
        undo(planned);
        return false;
      }
      saved += watts(target) - watts(target, vm_loads_[vm].mean);
      loads_[target] += vm_loads_[vm];
      planned.push_back({vm, target});
    }
    const double price =
        settings_.joules_per_move * static_cast<double>(planned.size()) + kind(host).boot_joules;
    undo(planned);
    if (saved * settings_.horizon_seconds < price) return false;
    for (const Move& each : planned) move(each.vm, host, each.host);
    on_.erase(std::find(on_.begin(), on_.end(), host));
    return true;
  }

  void undo(const std::vector<Move>& planned) {
    for (const Move& each : planned) loads_[each.host] -= vm_loads_[each.vm];
  }

  static constexpr int kPatience = 5;  // hosts in a row that could not be emptied

  const Fleet& fleet_;
  const SteadySettings& settings_;
  std::uint64_t step_;
  std::vector<std::uint64_t>& rests_until_;
  std::vector<BestLoad> best_;                   // of each kind
  std::vector<Load> loads_;                      // of each host
  std::vector<std::vector<std::uint32_t>> vms_;  // of each host, without those on their way in
  std::vector<Load> vm_loads_;
  std::vector<std::uint32_t> on_, gone_;
  std::vector<Move> moves_;
};

}  // namespace

BestLoad best_load(const HostKind& kind) {
  BestLoad best{1, kind.watts.points[10] / kind.cpu()};
  for (int tenth = 9; tenth > 0; --tenth) {
    const double load = tenth / 10.0;
    const double watts = kind.watts.points[static_cast<std::size_t>(tenth)] / (load * kind.cpu());
    if (watts < best.watts_per_cpu) best = {load, watts};
  }
  return best;
}

std::vector<Move> Steady::decide(const Fleet& fleet) {
  ++step_;
  rests_until_.resize(fleet.hosts.size());
  return Decision(fleet, settings_, step_, rests_until_).run();
}

}  // namespace kwatt::planner::consolidation
