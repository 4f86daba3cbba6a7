#pragma once
// Hosts, VMs and migrations between the decisions: what CloudSim 3.0.3's power package simulates,
// event for event, so that its published figures can be reproduced.
//
//   * A VM wants the linear interpolation of its trace; sample k is at k steps, the last one lasts.
//   * A host gives each VM at most one core. If all together want more than it has, each gets the
//     same share of what it wants, rounded down to whole units.
//   * A migration lasts memory / copy rate. The VM runs at 90 % on its source meanwhile, and the
//     target holds a tenth of what it wants.
//   * A VM that wants exactly nothing, and is not moving, has ended: it never returns.
//   * A host with no load is off and draws nothing. Energy is the mean of the power at both ends of
//     an interval × time, and 0 if the host was off at its start.
// Beyond CloudSim: hosts may need time and energy to boot, and memory may be wanted, too.
#include <cstdint>
#include <queue>
#include <vector>

#include "planner/consolidation/fleet.hpp"
#include "simulator/consolidation/metrics.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::consolidation {

class World {
 public:
  // The fleet's VMs have hosts. The series outlive the world; `memory` may be null, then only CPU
  // is wanted. One column for each VM.
  World(planner::consolidation::Fleet fleet, const traces::Series& cpu,
        const traces::Series* memory);
  World(const World&) = delete;  // the fleet refers to it
  World& operator=(const World&) = delete;

  const planner::consolidation::Fleet& fleet() const { return fleet_; }
  // Of the next start or end of a migration; infinite without one.
  double next_event() const;
  // Everything under way until `time`, including it, and a look at all hosts then. Not before the
  // time of the last call.
  void advance(double time);
  // The starts and ends of migrations before `time`, and nothing after the last of them.
  void settle(double time);
  // Each VM's utilization is now part of its past.
  void remember();
  void start(const planner::consolidation::Move& move);
  Metrics finish();

 private:
  struct Event {
    double time = 0;
    std::uint64_t number = 0;
    bool ends = false;  // else the copying starts
    planner::consolidation::Move move;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  void want(double time);
  void next();
  void look(double time);
  void look_at(std::size_t host, double time);
  void copy(const planner::consolidation::Move& move, double time);
  void land(const planner::consolidation::Move& move);
  void end_idle_vms();
  void leave(std::uint32_t vm, std::uint32_t host);
  bool arrives(std::uint32_t vm, const planner::consolidation::Host& host) const;

  planner::consolidation::Fleet fleet_;
  const traces::Series& cpu_;
  const traces::Series* memory_;
  Meter meter_;
  std::vector<std::vector<double>> past_;
  std::vector<double> utilization_, given_;
  std::vector<bool> copying_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  double now_ = 0;      // of the last look
  double wanted_ = -1;  // when demands were calculated
};

}  // namespace kwatt::simulator::consolidation
