#include "simulator/consolidation/experiment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/consolidation/world.hpp"

namespace kwatt::simulator::consolidation {
namespace {

using planner::consolidation::Fleet;
using planner::consolidation::Host;
using planner::consolidation::HostKind;
using planner::consolidation::kNone;
using planner::consolidation::Move;
using planner::consolidation::Vm;

// CloudSim creates VMs at 0 s and hands them their work one tick later: its steps are off by that.
constexpr double kFirstTick = 0.1;

struct Room {
  double cpu = 0, memory = 0;
};

std::uint32_t choose(const Fleet& fleet, const std::vector<Room>& rooms, const Vm& vm,
                     Start start) {
  std::uint32_t found = kNone;
  double least = 0;
  for (std::uint32_t h = 0; h < rooms.size(); ++h) {
    const HostKind& kind = fleet.kind(fleet.hosts[h]);
    if (vm.cpu > kind.core_cpu || vm.cpu > rooms[h].cpu || vm.memory > rooms[h].memory) continue;
    if (start == Start::first_fit) return h;
    const double load = (kind.cpu() - rooms[h].cpu + vm.cpu) / kind.cpu();
    const double increase = kind.watts.at(load) - kind.watts.idle();
    if (found == kNone || increase < least) {
      found = h;
      least = increase;
    }
  }
  return found;
}

Result<Fleet> placed(const Setup& setup) {
  Fleet fleet = setup.fleet;
  std::vector<Room> rooms;
  for (const Host& host : fleet.hosts) {
    rooms.push_back({fleet.kind(host).cpu(), fleet.kind(host).memory});
  }
  for (std::uint32_t v = 0; v < fleet.vms.size(); ++v) {
    Vm& vm = fleet.vms[v];
    const std::uint32_t host = choose(fleet, rooms, vm, setup.start);
    if (host == kNone) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("VM {} of {} CPU and {} memory fits no host that has room left; add "
                              "hosts or make it smaller",
                              v, vm.cpu, vm.memory));
    }
    vm.host = host;
    fleet.hosts[host].vms.push_back(v);
    rooms[host].cpu -= vm.cpu;
    rooms[host].memory -= vm.memory;
  }
  return fleet;
}

Result<void> check(const Fleet& fleet, const Move& move) {
  if (move.vm < fleet.vms.size() && move.host < fleet.hosts.size() &&
      fleet.vms[move.vm].host != kNone && fleet.vms[move.vm].host != move.host) {
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("the policy moves VM {} to host {}: there must be such a VM, running on "
                          "another host, and such a host",
                          move.vm, move.host));
}

}  // namespace

Result<Metrics> run(const Setup& setup, const traces::Series& cpu, const traces::Series* memory,
                    planner::consolidation::Policy& policy, const Observer& observer) {
  for (const traces::Series* series : {&cpu, memory}) {
    if (series == nullptr || series->columns() == setup.fleet.vms.size()) continue;
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} columns in a trace for {} VMs, expected one for each",
                            series->columns(), setup.fleet.vms.size()));
  }
  Result<Fleet> fleet = placed(setup);
  if (!fleet) return fleet.error();
  World world(std::move(fleet.value()), cpu, memory);
  const double step = setup.fleet.step_seconds;
  for (double time = kFirstTick + step; time < setup.seconds; time += step) {
    world.advance(time);
    world.remember();
    const std::vector<Move> moves = policy.decide(world.fleet());
    if (observer) observer(time, world.fleet(), moves);
    for (const Move& move : moves) {
      if (const Result<void> allowed = check(world.fleet(), move); !allowed) {
        return allowed.error();
      }
      world.start(move);
    }
  }
  world.settle(setup.seconds);
  return world.finish();
}

}  // namespace kwatt::simulator::consolidation
