#include "planner/consolidation/selection.hpp"

namespace kwatt::planner::consolidation {
namespace {

template <class Measure>
std::uint32_t least(const Draft& draft, const DraftHost& host, Measure measure) {
  std::uint32_t found = kNone;
  double value = 0;
  for (const std::uint32_t vm : host.vms) {
    const Vm& candidate = draft.fleet().vms[vm];
    if (candidate.moving) continue;
    const double its = measure(candidate);
    if (found == kNone || its < value) {
      found = vm;
      value = its;
    }
  }
  return found;
}

}  // namespace

std::uint32_t MinimumMigrationTime::select(const Draft& draft, const DraftHost& host) {
  return least(draft, host, [](const Vm& vm) { return vm.memory; });
}

std::uint32_t MinimumUtilization::select(const Draft& draft, const DraftHost& host) {
  return least(draft, host, [](const Vm& vm) { return vm.demand / vm.cpu; });
}

std::uint32_t RandomSelection::select(const Draft& draft, const DraftHost& host) {
  std::vector<std::uint32_t> candidates;
  for (const std::uint32_t vm : host.vms) {
    if (!draft.fleet().vms[vm].moving) candidates.push_back(vm);
  }
  if (candidates.empty()) return kNone;
  return candidates[random_() % candidates.size()];
}

}  // namespace kwatt::planner::consolidation
