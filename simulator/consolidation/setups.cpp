#include "simulator/consolidation/setups.hpp"

#include <array>
#include <vector>

namespace kwatt::simulator::consolidation {
namespace {

using planner::consolidation::Host;
using planner::consolidation::HostKind;
using planner::consolidation::Vm;
using planner::consolidation::Watts;

// 1 Gbit/s, half of it for migrations; CloudSim counts 8,000 kbit as a MB.
constexpr double kCopyPerSecond = 1'000'000.0 / (2 * 8'000);

// HP ProLiant ML110 G4 and G5, https://www.spec.org/power_ssj2008/results/.
const std::array<HostKind, 2> kKinds = {
    HostKind{2,
             1860,
             4096,
             kCopyPerSecond,
             {{86, 89.4, 92.6, 96, 99.5, 102, 106, 108, 112, 114, 117}},
             0,
             0},
    HostKind{2,
             2660,
             4096,
             kCopyPerSecond,
             {{93.7, 97, 101, 105, 110, 116, 121, 125, 129, 133, 135}},
             0,
             0}};

// One core and its memory.
constexpr double kCoreCpu = 2660, kCoreMemory = 4096;
constexpr double kBootSeconds = 120;

HostKind modern(double cores, const Watts& watts) {
  return {cores,
          kCoreCpu,
          cores * kCoreMemory,
          10 * kCopyPerSecond,
          watts,
          kBootSeconds,
          watts.points.back() * kBootSeconds};
}

// https://www.spec.org/power_ssj2008/results/: 2 × EPYC 7763 (ASUS RS700A), EPYC 7763 (HPE DL325),
// 2 × Xeon 8380 (ASUS RS720), 2 × Xeon 8352Y (Nettrix), 2 × Xeon Gold 6336Y (Inspur), 2 × Xeon
// Silver 4214 (Inspur), Xeon E-2388G (Fujitsu).
std::vector<HostKind> modern_kinds() {
  return {modern(128, {{122, 164, 182, 198, 214, 232, 249, 268, 299, 349, 406}}),
          modern(64, {{56.8, 100, 116, 130, 143, 162, 191, 211, 231, 250, 268}}),
          modern(80, {{110, 181, 212, 244, 269, 303, 342, 386, 443, 514, 623}}),
          modern(64, {{137, 185, 213, 242, 271, 301, 333, 365, 417, 478, 491}}),
          modern(48, {{176, 193, 209, 225, 245, 270, 329, 396, 487, 583, 650}}),
          modern(24, {{112, 138, 150, 161, 175, 184, 198, 212, 242, 261, 289}}),
          modern(8, {{18, 21.6, 24.4, 27.2, 30.5, 34.7, 39, 43.8, 49.7, 59.1, 73.6}})};
}

constexpr std::array<double, 4> kMips = {2500, 2000, 1000, 500};
constexpr std::array<double, 4> kMemory = {870, 1740, 1740, 613};

Setup setup_of(std::vector<HostKind> kinds, std::size_t vms, std::size_t hosts) {
  Setup setup;
  setup.fleet.kinds = std::move(kinds);
  for (std::size_t h = 0; h < hosts; ++h) {
    Host host;
    host.kind = static_cast<std::uint32_t>(h % setup.fleet.kinds.size());
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

}  // namespace

Setup planetlab_setup(std::size_t vms, std::size_t hosts) {
  return setup_of({kKinds.begin(), kKinds.end()}, vms, hosts);
}

Setup modern_setup(std::size_t vms, std::size_t hosts) {
  return setup_of(modern_kinds(), vms, hosts);
}

}  // namespace kwatt::simulator::consolidation
