#pragma once
// What a consolidation policy sees: machines, the virtual machines on them, and what is known of
// their load at this moment. A value without clock or future: samples end with the newest.
//
// CPU has one unit for hosts and VMs alike (the literature's MIPS, or millicores), memory one
// (MB, MiB); policies only compare and divide them.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kwatt::planner::consolidation {

constexpr std::uint32_t kNone = UINT32_MAX;

// Watts at 0, 10, … 100 % load, linear between; loads outside 0..1 count as the nearest end.
struct Watts {
  std::array<double, 11> points{};
  double at(double load) const;
  double idle() const { return points.front(); }
};

// Hosts of one model. Off they draw nothing.
struct HostKind {
  double cores = 1;
  double core_cpu = 0;  // one core; a VM with one virtual CPU never gets more
  double memory = 0;
  double copy_per_second = 0;  // memory that a migration moves a second
  Watts watts;
  double boot_seconds = 0;  // before a woken host can receive anything
  double boot_joules = 0;   // spent in that time
  double cpu() const { return cores * core_cpu; }
};

struct Host {
  std::uint32_t kind = 0;
  // CPU that counts for its power, as measured last; 0: off, or all its VMs idle.
  double used = 0;
  std::vector<std::uint32_t> vms;       // here, or on their way here; in order of arrival
  std::vector<std::uint32_t> arriving;  // those of them that still run elsewhere
};

struct Vm {
  double cpu = 0;     // its size: utilization 1
  double memory = 0;  // its size: what a migration copies
  double demand = 0;  // CPU that it wants now
  double memory_demand = 0;
  std::uint32_t host = kNone;    // where it runs; kNone: it has ended
  bool moving = false;           // a migration is under way: it cannot be moved
  std::span<const double> past;  // utilization 0..1 at each step so far, oldest first
};

struct Fleet {
  std::vector<HostKind> kinds;
  std::vector<Host> hosts;
  std::vector<Vm> vms;
  double step_seconds = 300;  // between two decisions
  const HostKind& kind(const Host& host) const { return kinds[host.kind]; }
};

struct Move {
  std::uint32_t vm = kNone, host = kNone;
  bool operator==(const Move&) const = default;
};

// Decides at each step which VMs go where. May keep memory between steps, and nothing else: equal
// sequences of fleets give equal moves. A VM that is moving, or has ended, is never named; a move
// to a host without VMs wakes it. Not thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::vector<Move> decide(const Fleet& fleet) = 0;
};

}  // namespace kwatt::planner::consolidation
