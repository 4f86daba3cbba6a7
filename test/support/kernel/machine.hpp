#pragma once
// One machine: its /sys as a tree, and the things that only happen to machines (locks, removed
// CPUs, broken files), as one-line commands so that a test in any language can ask for them.
#include <functional>
#include <string>

#include "test/support/kernel/cpufreq.hpp"
#include "test/support/kernel/powercap.hpp"
#include "test/support/kernel/tree.hpp"

namespace kernel_rules {

struct MachineSpec {
  CpuSpec cpu;
  PowerSpec power;
};

class Machine {
 public:
  Machine(MachineSpec spec, std::function<double()> seconds);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Tree& sys() { return sys_; }
  // lock-rapl 0|1, clamp-rapl UW, energy ZONE UJ, temperature PACKAGE MILLICELSIUS, unplug CPU,
  // plug CPU, hide PATH, unhide PATH, break PATH ERRNO, refuse PATH ERRNO. False: not understood.
  bool command(const std::string& line);

 private:
  Tree sys_;
  CpuFreq cpus_;
  PowerCap power_;
};

}  // namespace kernel_rules
