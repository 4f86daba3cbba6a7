#include "simulator/consolidation/planetlab.hpp"

#include <array>

namespace kwatt::simulator::consolidation {
namespace {

using planner::consolidation::Host;
using planner::consolidation::HostKind;
using planner::consolidation::Vm;

// 1 Gbit/s, half of it for migrations; CloudSim counts 8,000 kbit as a MB.
constexpr double kCopyPerSecond = 1'000'000.0 / (2 * 8'000);

// HP ProLiant ML110 G4 and G5, https://www.spec.org/power_ssj2008/results/.
const std::array<HostKind, 2> kKinds = {
    HostKind{2, 1860, 4096, kCopyPerSecond,
             {{86, 89.4, 92.6, 96, 99.5, 102, 106, 108, 112, 114, 117}}, 0, 0},
    HostKind{2, 2660, 4096, kCopyPerSecond,
             {{93.7, 97, 101, 105, 110, 116, 121, 125, 129, 133, 135}}, 0, 0}};

constexpr std::array<double, 4> kMips = {2500, 2000, 1000, 500};
constexpr std::array<double, 4> kMemory = {870, 1740, 1740, 613};

}  // namespace

Setup planetlab_setup(std::size_t vms, std::size_t hosts) {
  Setup setup;
  setup.fleet.kinds.assign(kKinds.begin(), kKinds.end());
  for (std::size_t h = 0; h < hosts; ++h) {
    Host host;
    host.kind = static_cast<std::uint32_t>(h % kKinds.size());
    setup.fleet.hosts.push_back(host);
  }
  const std::size_t quarter = (vms + kMips.size() - 1) / kMips.size();
  for (std::size_t v = 0; v < vms; ++v) {
    Vm vm;
    vm.cpu = kMips[v / quarter];
    vm.memory = kMemory[v / quarter];
    setup.fleet.vms.push_back(vm);
  }
  return setup;
}

}  // namespace kwatt::simulator::consolidation
