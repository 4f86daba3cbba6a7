#include "planner/consolidation/draft.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::planner::consolidation {
namespace {

void append(History& sum, const History& more) {
  for (std::size_t i = 0; i < kHistory; ++i) sum[i] += more[i];
}

// Samples up to the oldest that is not zero; one at least.
std::size_t without_zero_tail(const History& history) {
  std::size_t n = kHistory;
  while (n > 1 && history[n - 1] == 0) --n;
  return n;
}

}  // namespace

Draft::Draft(const Fleet& fleet)
    : fleet_(fleet),
      histories_(fleet.vms.size()),
      samples_(fleet.vms.size(), 1),
      hosts_(fleet.hosts.size()) {
  for (std::size_t v = 0; v < fleet.vms.size(); ++v) {
    const Vm& vm = fleet.vms[v];
    if (vm.host == kNone) continue;
    const std::size_t n = std::min(kHistory, vm.past.size());
    for (std::size_t i = 0; i < n; ++i) {
      histories_[v][i] = vm.past[vm.past.size() - 1 - i] * vm.cpu;
    }
    samples_[v] = without_zero_tail(histories_[v]);
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    DraftHost& host = hosts_[h];
    const HostKind& kind = fleet.kind(fleet.hosts[h]);
    host.index = static_cast<std::uint32_t>(h);
    host.cpu = kind.cpu();
    host.core_cpu = kind.core_cpu;
    host.free = host.cpu;
    host.memory_free = kind.memory;
    host.vms = fleet.hosts[h].vms;
    if (!host.vms.empty()) recount(host);
  }
}

void Draft::recount(DraftHost& host) const {
  const std::vector<std::uint32_t>& arriving = fleet_.hosts[host.index].arriving;
  const auto arrives = [&](std::uint32_t vm) {
    return std::find(arriving.begin(), arriving.end(), vm) != arriving.end();
  };
  host.requested = host.handed_out = host.largest_memory = 0;
  host.history.fill(0);
  host.samples = 1;
  host.free = host.cpu;
  host.memory_free = fleet_.kind(fleet_.hosts[host.index]).memory;
  double wanted = 0;
  for (const std::uint32_t v : host.vms) {
    const Vm& vm = fleet_.vms[v];
    // A host holds a tenth for a VM on its way in.
    const double share = std::min(vm.demand, host.core_cpu) * (arrives(v) ? 0.1 : 1.0);
    wanted += share;
    host.requested += vm.demand;
    host.memory_free -= vm.memory_demand;
    host.largest_memory = std::max(host.largest_memory, vm.memory);
    append(host.history, histories_[v]);
    host.samples = std::max(host.samples, samples_[v]);
  }
  const bool enough = wanted <= host.cpu;
  const double scale = enough ? 1 : host.cpu / wanted;
  for (const std::uint32_t v : host.vms) {
    const double share = std::min(fleet_.vms[v].demand, host.core_cpu);
    const double given = enough ? share : std::floor(share * scale);
    host.handed_out += given;
  }
  host.free = enough ? host.cpu - wanted : 0;
}

bool Draft::fits(std::uint32_t vm, std::uint32_t host) const {
  const DraftHost& h = hosts_[host];
  const Vm& v = fleet_.vms[vm];
  return v.demand <= h.core_cpu && v.demand <= h.free && v.memory_demand <= h.memory_free;
}

void Draft::add(std::uint32_t vm, std::uint32_t host) {
  DraftHost& h = hosts_[host];
  const Vm& v = fleet_.vms[vm];
  h.vms.push_back(vm);
  h.requested += v.demand;
  h.handed_out += v.demand;
  h.free -= v.demand;
  h.memory_free -= v.memory_demand;
  h.largest_memory = std::max(h.largest_memory, v.memory);
  append(h.history, histories_[vm]);
  h.samples = std::max(h.samples, samples_[vm]);
}

void Draft::remove(std::uint32_t vm, std::uint32_t host) {
  DraftHost& h = hosts_[host];
  h.vms.erase(std::find(h.vms.begin(), h.vms.end(), vm));
  recount(h);
}

}  // namespace kwatt::planner::consolidation
