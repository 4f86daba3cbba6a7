#include "planner/consolidation/best_fit.hpp"

#include <algorithm>

namespace kwatt::planner::consolidation {

void sort_by_demand(const Fleet& fleet, std::vector<std::uint32_t>& vms) {
  std::stable_sort(vms.begin(), vms.end(), [&](std::uint32_t a, std::uint32_t b) {
    return fleet.vms[a].demand > fleet.vms[b].demand;
  });
}

BestFit::BestFit(Draft& draft, const OverloadRule& rule)
    : draft_(draft),
      rule_(rule),
      excluded_(draft.fleet().hosts.size()),
      watts_(draft.fleet().hosts.size()),
      idle_(draft.fleet().kinds.size()) {
  const Fleet& fleet = draft.fleet();
  for (std::size_t h = fleet.hosts.size(); h-- > 0;) {
    const Host& host = fleet.hosts[h];
    const auto index = static_cast<std::uint32_t>(h);
    watts_[h] = fleet.kind(host).watts.at(host.used / fleet.kind(host).cpu());
    if (host.used == 0 && draft.host(index).vms.empty()) {
      idle_[host.kind].push_back(index);
    } else {
      busy_.push_back(index);
    }
  }
}

void BestFit::exclude(std::uint32_t host) {
  excluded_[host] = true;
  std::erase(busy_, host);
}

void BestFit::consider(std::uint32_t vm, std::uint32_t index, Best& best) const {
  if (!draft_.fits(vm, index)) return;
  const DraftHost& drafted = draft_.host(index);
  const Fleet& fleet = draft_.fleet();
  const Host& host = fleet.hosts[index];
  const Watts& watts = fleet.kind(host).watts;
  const double load = (drafted.handed_out + fleet.vms[vm].demand) / drafted.cpu;
  if (load > 1) return;  // beyond the curve
  const double increase = watts.at(load) - watts_[index];
  const bool better = best.host == kNone || increase < best.increase ||
                      (increase == best.increase && index < best.host);
  if (!better) return;
  if (drafted.handed_out != 0 && rule_.overloaded(draft_, drafted, vm)) return;
  best = {index, increase};
}

std::uint32_t BestFit::place(std::uint32_t vm) {
  Best best;
  for (const std::uint32_t host : busy_) consider(vm, host, best);
  for (const std::vector<std::uint32_t>& idle : idle_) {
    const auto first = std::find_if(idle.rbegin(), idle.rend(),
                                    [&](std::uint32_t host) { return !excluded_[host]; });
    if (first != idle.rend()) consider(vm, *first, best);
  }
  if (best.host == kNone) return kNone;
  std::vector<std::uint32_t>& idle = idle_[draft_.fleet().hosts[best.host].kind];
  const auto woken = std::find(idle.begin(), idle.end(), best.host);
  if (woken != idle.end()) {
    idle.erase(woken);
    busy_.push_back(best.host);
  }
  draft_.add(vm, best.host);
  return best.host;
}

}  // namespace kwatt::planner::consolidation
