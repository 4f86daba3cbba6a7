#include "planner/consolidation/heuristic.hpp"

#include <algorithm>

#include "planner/consolidation/best_fit.hpp"

namespace kwatt::planner::consolidation {
namespace {

// Share of the CPU in use as measured, with CloudSim's forgiveness of rounding.
double measured(const Fleet& fleet, std::uint32_t host) {
  const double share = fleet.hosts[host].used / fleet.kind(fleet.hosts[host]).cpu();
  return share > 1 && share < 1.01 ? 1 : share;
}

std::vector<std::uint32_t> relieve(Draft& draft, const std::vector<std::uint32_t>& overloaded,
                                   const OverloadRule& rule, SelectionRule& selection) {
  std::vector<std::uint32_t> leaving;
  for (const std::uint32_t host : overloaded) {
    do {
      const std::uint32_t vm = selection.select(draft, draft.host(host));
      if (vm == kNone) break;
      leaving.push_back(vm);
      draft.remove(vm, host);
    } while (rule.overloaded(draft, draft.host(host)));
  }
  return leaving;
}

// Step 3: on which hosts may VMs still be found, and which hosts may receive.
class Emptying {
 public:
  Emptying(Draft& draft, const OverloadRule& rule, const std::vector<std::uint32_t>& overloaded)
      : draft_(draft), fit_(draft, rule), spared_(draft.fleet().hosts.size()) {
    const Fleet& fleet = draft.fleet();
    for (std::uint32_t h = 0; h < spared_.size(); ++h) {
      if (measured(fleet, h) == 0) {
        spare(h);
      } else {
        running_.push_back(h);
      }
    }
    for (const std::uint32_t h : overloaded) spare(h);
  }

  std::vector<Move> run() {
    std::vector<Move> moves;
    for (std::uint32_t host = next(); host != kNone; host = next()) {
      spare(host);
      const std::vector<Move> its = empty(host);
      for (const Move& move : its) spared_[move.host] = true;
      moves.insert(moves.end(), its.begin(), its.end());
    }
    return moves;
  }

 private:
  void spare(std::uint32_t host) {
    spared_[host] = true;
    fit_.exclude(host);
  }

  std::uint32_t next() const {
    const Fleet& fleet = draft_.fleet();
    std::uint32_t found = kNone;
    double least = 1;
    for (const std::uint32_t h : running_) {
      if (spared_[h]) continue;
      const double load = measured(fleet, h);
      if (load > 0 && load < least && has_movable(h)) {
        least = load;
        found = h;
      }
    }
    return found;
  }

  bool has_movable(std::uint32_t host) const {
    const Fleet& fleet = draft_.fleet();
    for (const std::uint32_t vm : draft_.host(host).vms) {
      if (!fleet.vms[vm].moving) return true;
      const std::vector<std::uint32_t>& arriving = fleet.hosts[host].arriving;
      if (std::find(arriving.begin(), arriving.end(), vm) != arriving.end()) return false;
    }
    return false;
  }

  // All VMs of the host, or none.
  std::vector<Move> empty(std::uint32_t host) {
    std::vector<std::uint32_t> vms;
    for (const std::uint32_t vm : draft_.host(host).vms) {
      if (!draft_.fleet().vms[vm].moving) vms.push_back(vm);
    }
    sort_by_demand(draft_.fleet(), vms);
    std::vector<Move> moves;
    for (const std::uint32_t vm : vms) {
      const std::uint32_t target = fit_.place(vm);
      if (target == kNone) {
        for (const Move& move : moves) draft_.remove(move.vm, move.host);
        return {};
      }
      moves.push_back({vm, target});
    }
    return moves;
  }

  Draft& draft_;
  BestFit fit_;
  std::vector<std::uint32_t> running_;
  std::vector<bool> spared_;  // not to be emptied
};

}  // namespace

std::vector<Move> Heuristic::decide(const Fleet& fleet) {
  Draft draft(fleet);
  std::vector<std::uint32_t> overloaded;
  for (std::uint32_t h = 0; h < fleet.hosts.size(); ++h) {
    if (rule_->overloaded(draft, draft.host(h))) overloaded.push_back(h);
  }
  std::vector<std::uint32_t> leaving = relieve(draft, overloaded, *rule_, *selection_);
  sort_by_demand(fleet, leaving);
  std::vector<Move> moves;
  BestFit fit(draft, *rule_);
  for (const std::uint32_t host : overloaded) fit.exclude(host);
  for (const std::uint32_t vm : leaving) {
    const std::uint32_t host = fit.place(vm);
    if (host != kNone) moves.push_back({vm, host});
  }
  const std::vector<Move> emptied = Emptying(draft, *rule_, overloaded).run();
  moves.insert(moves.end(), emptied.begin(), emptied.end());
  return moves;
}

}  // namespace kwatt::planner::consolidation
