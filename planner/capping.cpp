// Capping: against machines that draw close to their maximum, and for a budget over all of them.
#include <algorithm>

#include <fmt/format.h>

#include "planner/arrival.hpp"
#include "planner/cap_budget.hpp"
#include "planner/propose.hpp"
#include "planner/request.hpp"
#include "planner/settings.hpp"
#include "planner/verdicts.hpp"

namespace kwatt::planner {
namespace {

// Pods that leave a hot machine go to nodes with less load than this, and do not lift them above.
constexpr Permille kReliefLimit{700};
// Shares of a budget move by at least this much, or nodes would be patched all the time.
constexpr std::int64_t kLeastChangeWatts = 5;
constexpr std::int64_t kLeastChangePercent = 5;

const std::set<std::string>& cap_key() {
  static const std::set<std::string> key = {std::string(names::kPowerCap)};
  return key;
}

// After a failed attempt at the BMC's limit the next one is due later.
bool bmc_rests(const NodeView& node, TimePoint now) {
  const auto& next = node.machine->status.bmc.next_attempt;
  return next && *next > now;
}

class CappingLever {
 public:
  CappingLever(Pass& pass, Proposal& proposal)
      : pass_(pass),
        spec_(pass.spec.capping),
        proposal_(proposal),
        candidates_(pass.snapshot, pass.spec.disruption) {}

  void run() {
    for (const NodeName& name : pass_.selected) {
      const auto found = pass_.snapshot.nodes.find(name);
      if (found == pass_.snapshot.nodes.end()) continue;
      if (is_running(found->second)) nodes_.push_back(look_at(found->second));
    }
    if (spec_.budget_watts > 0) return share_budget();
    for (const Seen& seen : nodes_) decide(seen);
  }

 private:
  struct Seen {
    const NodeView* node = nullptr;
    CapFacts facts;
    std::optional<WindowMean> mean;  // with power
    std::optional<Verdict> refusal;  // its cap cannot be changed
    std::int64_t target = 0;         // capPercentOfMax in watts
    bool hot = false;                // above the threshold, or not yet below the release point
  };

  void refuse(const NodeView& node, Verdict verdict) {
    proposal_.refusals.insert_or_assign(node.name(), std::move(verdict));
  }

  Seen look_at(const NodeView& node) const {
    Seen seen;
    seen.node = &node;
    seen.facts = cap_facts(node, spec_.method);
    const auto concerns = [&](api::CapBy way) {
      return seen.facts.by == way || seen.facts.held == way;
    };
    seen.refusal = settings_refused(pass_, node, cap_key(), concerns(api::CapBy::RAPL));
    if (!seen.refusal && concerns(api::CapBy::BMC)) seen.refusal = bmc_refused(node);
    seen.target = seen.facts.maximum * spec_.cap_percent_of_max / 100;
    seen.mean = power_window_mean(node, spec_.window, pass_.snapshot.now);
    if (seen.mean) {
      // Once capped, it is hot until it falls below the release point.
      const bool held = seen.facts.requested && *seen.facts.requested <= seen.target;
      seen.hot = held ? !below(seen, spec_.release_percent_of_max)
                      : above(seen, spec_.above_percent_of_max);
    }
    return seen;
  }

  // The mean against this percentage of the maximum: milliwatts × 100 against watts × 1000.
  static bool above(const Seen& seen, std::int64_t of_max) {
    return seen.mean->power.count() * 100 > seen.facts.maximum * 1000 * of_max;
  }
  static bool below(const Seen& seen, std::int64_t of_max) {
    return seen.mean->power.count() * 100 < seen.facts.maximum * 1000 * of_max;
  }

  std::string power_text(const Seen& seen) const {
    return fmt::format("{} of {} W", watts_text(seen.mean->power), seen.facts.maximum);
  }

  std::optional<Verdict> bmc_refused(const NodeView& node) const {
    if (!node.has_driver) return no_driver(node);
    const api::BmcStatus& bmc = node.machine->status.bmc;
    if (!bmc_rests(node, pass_.snapshot.now)) return std::nullopt;
    return Verdict{Reason::BMCError, fmt::format("{}; next attempt at {}", bmc.error,
                                                 format_rfc3339(*bmc.next_attempt))};
  }

  static std::optional<Verdict> out_of_range(const Seen& seen, std::int64_t watts) {
    if (seen.facts.cap_max <= 0) {
      return Verdict{Reason::OutOfRange, seen.facts.by == api::CapBy::BMC
                                             ? "the machine's BMC offers no power limit"
                                             : "the machine offers no power cap"};
    }
    if (watts < seen.facts.cap_min || watts > seen.facts.cap_max) {
      return Verdict{Reason::OutOfRange, fmt::format("a cap of {} W is not within {}..{} W", watts,
                                                     seen.facts.cap_min, seen.facts.cap_max)};
    }
    return std::nullopt;
  }

  Verdict unknown_power() const {
    return {Reason::StaleTelemetry,
            fmt::format("no power readings of the last {}", format_go_duration(spec_.window))};
  }

  void cap(const Seen& seen, std::optional<std::int64_t> watts, Reason reason,
           std::string message) {
    // A release goes to whoever holds the cap.
    const SetCap set{watts, watts ? seen.facts.by : seen.facts.held};
    proposal_.actions.push_back(
        action_on(pass_, *seen.node, set, reason, std::move(message), Milliwatts{}));
  }

  // ---- without a budget: each machine for itself
  void decide(const Seen& seen) {
    if (seen.refusal) return refuse(*seen.node, *seen.refusal);
    if (!seen.mean) return refuse(*seen.node, unknown_power());
    if (seen.facts.requested) return decide_capped(seen);
    if (!seen.hot) {
      return refuse(*seen.node,
                    {Reason::InUse, fmt::format("draws {}, not above {} %", power_text(seen),
                                                spec_.above_percent_of_max)});
    }
    if (spec_.migration.enabled && relieved_instead(seen)) return;
    if (auto verdict = out_of_range(seen, seen.target)) return refuse(*seen.node, *verdict);
    cap(seen, seen.target, Reason::PowerHigh,
        fmt::format("draws {}, above {} %", power_text(seen), spec_.above_percent_of_max));
  }

  // Since when the cap is in force, as far as is known.
  std::optional<TimePoint> capped_since(const Seen& seen) const {
    if (seen.facts.held == api::CapBy::RAPL) return held_since(*seen.node, cap_key());
    const api::NodeDecision& decision = seen.node->machine->status.decision;
    return decision.reason == api::to_string(Reason::PowerHigh) ? decision.since : std::nullopt;
  }

  void decide_capped(const Seen& seen) {
    // kube-scheduler has chosen a capped node: nothing else fitted. It is capped again if it then
    // draws too much for a window.
    const auto since = capped_since(seen);
    const auto arrival = since ? arrival_since(*seen.node, *since) : std::nullopt;
    if (arrival) {
      return cap(seen, std::nullopt, Reason::Scheduled,
                 fmt::format("pod {} was scheduled to it while it was capped", arrival->pod));
    }
    if (!seen.hot) {
      return cap(seen, std::nullopt, Reason::LowUtilization,
                 fmt::format("draws {}, below {} %: released", power_text(seen),
                             spec_.release_percent_of_max));
    }
    const bool moves = seen.facts.held != seen.facts.by;
    // A cap that a former budget has marked to be kept is asked for anew, without the mark.
    if (*seen.facts.requested == seen.target && !moves && !seen.facts.lost && !seen.facts.kept) {
      return refuse(*seen.node, {Reason::PowerHigh, fmt::format("capped at {} W, draws {}",
                                                                seen.target, power_text(seen))});
    }
    if (auto verdict = out_of_range(seen, seen.target)) return refuse(*seen.node, *verdict);
    const std::string why =
        moves             ? "the cap changes to the policy's method"
        : seen.facts.lost ? "the BMC does not have the cap any more: set again"
                          : fmt::format("the policy now wants {} %", spec_.cap_percent_of_max);
    cap(seen, seen.target, Reason::PowerHigh, fmt::format("draws {}; {}", power_text(seen), why));
  }

  // capping.migration: pods first. True: nothing else is to be done with the node now.
  bool relieved_instead(const Seen& seen) {
    const NodeView& node = *seen.node;
    const TimePoint now = pass_.snapshot.now;
    if (node.control_plane || node.own_node) return false;
    // After a Migrate the node settles for a window; what is too much then is capped.
    const auto& rest = node.memory().cool_down_until;
    if (rest && *rest > now && *rest - now <= spec_.window) {
      wake_after(proposal_, *rest - now);
      refuse(node, {Reason::CoolDown, "pods have just left: waits for a window of readings"});
      return true;
    }
    if ((rest && *rest > now) || just_relieved(node, spec_.window, now)) return false;
    std::vector<Destination> destinations = destinations_below(pass_, kReliefLimit, spec_.window);
    const Relief relief =
        relieve(pass_, candidates_, node, seen.mean->utilization, excess(seen),
                static_cast<std::size_t>(spec_.migration.max_pods), destinations, kReliefLimit);
    if (relief.moves.empty()) return false;
    proposal_.actions.push_back(
        action_on(pass_, node, Migrate{relief.moves}, Reason::PowerHigh,
                  fmt::format("draws {}, above {} %: {} pods move first", power_text(seen),
                              spec_.above_percent_of_max, relief.moves.size()),
                  Milliwatts{}));
    return true;
  }

  // How much utilization must go until the curve predicts less than the threshold.
  Permille excess(const Seen& seen) const {
    const models::PowerCurve& curve = seen.node->model.curve;
    const Permille load = seen.mean->utilization;
    const std::int64_t limit = seen.facts.maximum * 10 * spec_.above_percent_of_max;
    for (Permille less{1}; less < load; less += Permille{1}) {
      const Milliwatts predicted = seen.mean->power - (curve.at(load) - curve.at(load - less));
      if (predicted.count() < limit) return less;
    }
    return load;
  }

  // ---- with a budget: shares by need, lowered first, raised when there is room
  void share_budget() {
    std::int64_t left = spec_.budget_watts;
    std::vector<ShareOf> shares;
    std::map<NodeName, const Seen*> seen_by_name;
    std::int64_t asleep = 0;  // machines that draw power but do not run: their maximum is fixed
    for (const NodeName& name : pass_.selected) {
      const auto found = pass_.snapshot.nodes.find(name);
      if (found == pass_.snapshot.nodes.end() || is_running(found->second)) continue;
      asleep += cap_facts(found->second).bound;
    }
    left -= asleep;
    for (const Seen& seen : nodes_) {
      if (seen.refusal || seen.facts.cap_max <= 0) {
        left -= seen.facts.settled;
        continue;
      }
      seen_by_name[seen.node->name()] = &seen;
      shares.push_back(share_of(seen));
    }
    // Room for nodes that are to be woken comes first, if the least caps of the others leave any.
    std::int64_t wanted = pass_.power_wanted.count() / 1000;
    auto given = share_power(std::max<std::int64_t>(0, left - wanted), shares);
    if (!given && wanted > 0) {
      wanted = 0;
      given = share_power(std::max<std::int64_t>(0, left), shares);
    }
    PowerLedger ledger{pass_.snapshot, pass_.selected, spec_.budget_watts};
    const bool exceeded = wanted > 0 || ledger.bound() > spec_.budget_watts;
    for (const Seen& seen : nodes_) {
      if (seen.refusal) {
        refuse(*seen.node, *seen.refusal);
      } else if (seen.facts.cap_max <= 0) {
        refuse(*seen.node, *out_of_range(seen, seen.target));
      }
    }
    for (const ShareOf& share : shares) {
      const Seen& seen = *seen_by_name.at(share.name);
      apply(seen, given ? given->at(share.name) : share.floor, given.has_value(), exceeded, ledger);
    }
  }

  ShareOf share_of(const Seen& seen) const {
    ShareOf share;
    share.name = seen.node->name();
    share.floor = std::min(seen.facts.cap_min, seen.facts.maximum);
    share.ceiling = seen.hot ? std::max(share.floor, std::min(seen.target, seen.facts.maximum))
                             : seen.facts.maximum;
    // A tenth more than it draws; a machine without readings may need all.
    share.need = seen.mean ? (seen.mean->power.count() * 11 / 10 + 999) / 1000 : share.ceiling;
    return share;
  }

  void apply(const Seen& seen, std::int64_t watts, bool enough, bool exceeded,
             PowerLedger& ledger) {
    const NodeView& node = *seen.node;
    const CapFacts& facts = seen.facts;
    std::optional<std::int64_t> wanted;
    if (watts < facts.maximum) wanted = std::min(watts, facts.cap_max);
    const std::int64_t now = facts.requested.value_or(facts.maximum);
    const std::int64_t then = wanted.value_or(facts.maximum);
    const std::string share =
        fmt::format("budget {} W: share {} W of {} W", spec_.budget_watts, then, facts.maximum);
    const Verdict settled =
        enough ? Verdict{then < facts.maximum ? Reason::PowerHigh : Reason::InUse, share}
               : Verdict{Reason::OverBudget, fmt::format("budget {} W is below the sum of the "
                                                         "least caps; this machine's is {} W",
                                                         spec_.budget_watts, facts.cap_min)};
    const std::int64_t least =
        std::max(kLeastChangeWatts, facts.maximum * kLeastChangePercent / 100);
    const bool to_the_end = !wanted && facts.requested.has_value();
    // A cap from before the budget would end with the controller or an agent: first it is marked.
    const bool unmarked = facts.held == api::CapBy::RAPL && facts.by == facts.held && !facts.kept;
    if (facts.requested && unmarked && (then > now || now - then < least)) {
      return cap(seen, facts.requested, Reason::PowerHigh,
                 share + "; it shall last when the controller is gone");
    }
    const bool again = facts.requested && wanted && (facts.lost || facts.held != facts.by);
    if (then == now && !to_the_end && !again) return refuse(node, settled);
    if (std::abs(then - now) < least && !exceeded && !to_the_end && !again) {
      return refuse(node, settled);
    }
    if (then < now || (again && then == now)) {
      return cap(seen, wanted, enough ? Reason::PowerHigh : Reason::OverBudget, share);
    }
    // More only while everything else, as it is confirmed now, leaves room for it.
    if (!ledger.raise(node, wanted)) {
      return refuse(node, {Reason::OverBudget, share + ": waits until others are lowered"});
    }
    cap(seen, wanted, Reason::LowUtilization, share);
  }

  Pass& pass_;
  const api::CappingSpec& spec_;
  Proposal& proposal_;
  Candidates candidates_;
  std::vector<Seen> nodes_;
};

// Who switches capping off wants no caps: those of a budget would stay even without a controller.
Proposal give_back(const Pass& pass) {
  Proposal proposal;
  for (const NodeName& name : pass.selected) {
    const auto found = pass.snapshot.nodes.find(name);
    if (found == pass.snapshot.nodes.end() || !is_running(found->second)) continue;
    const NodeView& node = found->second;
    const CapFacts facts = cap_facts(node);
    const bool by_agent = facts.held == api::CapBy::RAPL;
    if (!facts.requested || settings_refused(pass, node, cap_key(), by_agent)) continue;
    if (!by_agent && (!node.has_driver || bmc_rests(node, pass.snapshot.now))) continue;
    proposal.actions.push_back(
        action_on(pass, node, SetCap{std::nullopt, facts.held}, Reason::LeverDisabled,
                  "capping.enabled is false: its cap is given back", Milliwatts{}));
  }
  return proposal;
}

}  // namespace

Proposal capping(Pass& pass) {
  Proposal proposal;
  if (!pass.spec.capping.enabled) return give_back(pass);
  CappingLever{pass, proposal}.run();
  return proposal;
}

}  // namespace kwatt::planner
