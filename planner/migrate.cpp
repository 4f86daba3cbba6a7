// Migrate: empty nodes onto others that stay, so that they can be switched off.
#include <algorithm>

#include <fmt/format.h>

#include "planner/capacity.hpp"
#include "planner/destinations.hpp"
#include "planner/drain.hpp"
#include "planner/levers.hpp"
#include "planner/pending.hpp"
#include "planner/propose.hpp"
#include "planner/saving.hpp"

namespace kwatt::planner {
namespace {

// How many candidates BestSaving drains on paper in one pass, over all maxNodes choices.
constexpr std::size_t kDrainsTried = 512;
constexpr std::size_t kDrainsPerChoice = 16;

struct Source {
  const NodeView* node = nullptr;
  std::size_t pods = 0;
  std::int64_t best_score = 0;  // no drain can score more
  bool refused = false;
};

struct Emptying {
  Drained drained;
  Milliwatts saving;
  std::int64_t score = 0;
};

class MigrateLever {
 public:
  MigrateLever(Pass& pass, Proposal& proposal)
      : pass_(pass),
        proposal_(proposal),
        candidates_(pass.snapshot, pass.spec.disruption),
        choice_(pass),
        awake_count_(pass),
        savings_(pass) {}

  void run() {
    const bool pods_wait = !settle(pass_).waiting.empty();
    capacity_ = awake_capacity(pass_);
    load_ = measured_load(pass_);
    look_at_running();
    for (const NodeName& name : pass_.selected) {
      const auto at = pass_.snapshot.nodes.find(name);
      if (at != pass_.snapshot.nodes.end()) look_at(at->second, pods_wait);
    }
    const bool best = pass_.spec.migration.strategy == api::MigrationStrategy::BestSaving;
    std::stable_sort(sources_.begin(), sources_.end(), [best](const Source& a, const Source& b) {
      return best ? a.best_score > b.best_score : a.pods < b.pods;
    });
    if (best) {
      best_saving();
    } else {
      fewest_pods();
    }
    for (const Source& source : sources_) {
      if (source.refused || acted_on(source)) continue;
      refuse(*source.node, {Reason::RateLimited, fmt::format("migration.maxNodes {} is used up",
                                                             pass_.spec.migration.max_nodes)});
    }
  }

 private:
  void refuse(const NodeView& node, Verdict verdict) {
    proposal_.refusals.insert_or_assign(node.name(), std::move(verdict));
  }

  void refuse(Source& source, Verdict verdict) {
    source.refused = true;
    refuse(*source.node, std::move(verdict));
  }

  bool acted_on(const Source& source) const {
    return std::any_of(proposal_.actions.begin(), proposal_.actions.end(),
                       [&](const Action& action) { return action.node == source.node->name(); });
  }

  // Nodes that are being emptied already, and wake tests: both are limited.
  void look_at_running() {
    std::int64_t emptying = 0;
    for (const NodeName& name : pass_.selected) {
      const auto at = pass_.snapshot.nodes.find(name);
      if (at == pass_.snapshot.nodes.end()) continue;
      const NodeView& node = at->second;
      const api::Operation& operation = node.operation();
      if (!operation.id.empty() && operation.kind == api::OperationKind::PowerOff &&
          !operation.moves.empty()) {
        ++emptying;
      }
      // A node that is empty anyway is tested before one is emptied for it.
      const bool empty_untested = counts_as_awake(node) && workload_count(node) == 0 &&
                                  !wake_trusted(pass_, node) && !protected_from_off(pass_, node);
      wake_test_running_ =
          wake_test_running_ || (!operation.id.empty() && operation.then_wake) || empty_untested;
    }
    const std::int64_t left = pass_.spec.migration.max_nodes - emptying;
    allowance_ = left > 0 ? static_cast<std::size_t>(left) : 0;
  }

  void look_at(const NodeView& node, bool pods_wait) {
    const std::size_t pods = workload_count(node);
    if (node.power_state() != api::PowerState::On || pods == 0) return;  // not for this lever
    if (auto verdict = protected_from_off(pass_, node)) return refuse(node, std::move(*verdict));
    if (pods_wait) {
      return refuse(node, {Reason::PendingPods, "pods wait for resources: nothing is emptied"});
    }
    if (!wake_trusted(pass_, node)) {
      if (pass_.spec.power_off.wake_test == api::WakeTest::Manual) {
        return refuse(node, {Reason::WakeNotVerified,
                             fmt::format("run `kubectl kwatt wake-test {}` first", node.name())});
      }
      if (wake_test_running_) {
        return refuse(node, {Reason::WakeNotVerified,
                             "waits for its wake test: one node at a time is tested"});
      }
    }
    const Permille used = savings_.utilization(node);
    const std::int64_t limit = pass_.spec.migration.utilization_below_percent;
    if (used >= percent(limit)) {
      return refuse(node,
                    {Reason::InUse, fmt::format("{}.{} % used, not below {} %", used.count() / 10,
                                                used.count() % 10, limit)});
    }
    const Milliwatts at_most = savings_.at_most(node);
    const std::int64_t score = savings_.score(at_most, pods);
    if (at_most.count() <= 0) {
      return refuse(node, {Reason::NotWorthIt, "shutdown and boot take more than being off saves"});
    }
    if (scored() && score < pass_.spec.migration.min_saving_score) {
      return refuse(node, too_little(at_most, score, pods));
    }
    sources_.push_back({&node, pods, score, false});
  }

  bool scored() const {
    return pass_.spec.migration.strategy == api::MigrationStrategy::BestSaving;
  }

  Verdict too_little(Milliwatts saving, std::int64_t score, std::size_t pods) const {
    return {Reason::NotWorthIt,
            fmt::format("score {} % is below migration.minSavingScore {}: saves {} of {} but moves "
                        "{} pods",
                        score, pass_.spec.migration.min_saving_score, watts_text(saving),
                        watts_text(savings_.total_power()), pods)};
  }

  void fewest_pods() {
    for (Source& source : sources_) {
      if (allowance_ == 0) return;
      if (source.refused) continue;  // a wake test chosen before it
      if (auto emptying = try_empty(source)) commit(source, std::move(*emptying));
    }
  }

  // Branch and bound: sources come with the most they can score, so the search ends as soon as the
  // best one found beats that of the next.
  void best_saving() {
    const std::size_t tries =
        std::max(kDrainsPerChoice, kDrainsTried / std::max<std::size_t>(1, allowance_));
    while (allowance_ > 0) {
      Source* best = nullptr;
      std::int64_t best_score = 0;
      std::size_t tried = 0;
      for (Source& source : sources_) {
        if (source.refused || acted_on(source)) continue;
        if (best != nullptr && (source.best_score <= best_score || tried >= tries)) break;
        ++tried;
        const std::size_t mark = pass_.what_if.mark();
        const auto emptying = try_empty(source);
        if (!emptying) continue;
        pass_.what_if.rollback(mark);
        awake_count_.put_back(*source.node);
        if (best == nullptr || emptying->score > best_score) {
          best = &source;
          best_score = emptying->score;
        }
      }
      if (best == nullptr) return;
      // Nothing has changed since it was tried, so it works again.
      if (auto emptying = try_empty(*best)) commit(*best, std::move(*emptying));
    }
  }

  // Drains on paper; on success it is counted and reserved, else the source is refused.
  std::optional<Emptying> try_empty(Source& source) {
    const NodeView& node = *source.node;
    // Pods that another node (or the scheduler) sends here would be stranded.
    if (const std::int64_t incoming = pass_.what_if.incoming(node.name()); incoming > 0) {
      refuse(source, {Reason::InUse, fmt::format("{} more {} expected here", incoming,
                                                 incoming == 1 ? "pod is" : "pods are")});
      return std::nullopt;
    }
    if (auto verdict = awake_count_.take(node)) {
      refuse(source, std::move(*verdict));
      return std::nullopt;
    }
    const Capacity contributed =
        pass_.what_if.is_destination(node.name()) ? capacity_of(pass_, node) : Capacity{};
    const std::size_t mark = pass_.what_if.mark();
    auto result = drain(pass_, candidates_, choice_, node);
    std::optional<Verdict> verdict;
    Emptying emptying;
    if (auto* refusal = std::get_if<Verdict>(&result)) {
      verdict = std::move(*refusal);
    } else {
      emptying.drained = std::get<Drained>(std::move(result));
      verdict = judge(source, contributed, emptying);
    }
    if (!verdict) return emptying;
    pass_.what_if.rollback(mark);
    awake_count_.put_back(node);
    refuse(source, std::move(*verdict));
    return std::nullopt;
  }

  // Is it worth it, and is enough room left? Fills in saving and score.
  std::optional<Verdict> judge(const Source& source, const Capacity& contributed,
                               Emptying& emptying) const {
    const Capacity rest = after_moves(pass_, capacity_ - contributed, emptying.drained);
    if (!headroom_kept(rest, pass_.spec.power_on.headroom)) {
      return Verdict{Reason::Headroom,
                     "without it: " + headroom_text(rest, pass_.spec.power_on.headroom)};
    }
    MeasuredLoad load = load_;
    load.cpu -= measured_load(pass_, *source.node).cpu;
    if (auto verdict = overloads(pass_, load)) return verdict;
    emptying.saving = savings_.saving(*source.node, emptying.drained);
    emptying.score = savings_.score(emptying.saving, source.pods);
    if (emptying.saving.count() <= 0) {
      return Verdict{Reason::NotWorthIt, "the destinations would draw more than this node saves"};
    }
    if (scored() && emptying.score < pass_.spec.migration.min_saving_score) {
      return too_little(emptying.saving, emptying.score, source.pods);
    }
    return std::nullopt;
  }

  void commit(Source& source, Emptying emptying) {
    const NodeView& node = *source.node;
    const bool test = !wake_trusted(pass_, node);
    capacity_ = awake_capacity(pass_);
    load_.cpu -= measured_load(pass_, node).cpu;
    --allowance_;
    std::string message = fmt::format("{} pods move to {} nodes; saves {} of {}, score {} %",
                                      emptying.drained.moves.size(), emptying.drained.to.size(),
                                      watts_text(emptying.saving),
                                      watts_text(savings_.total_power()), emptying.score);
    if (test) message += "; woken again once as a wake test";
    proposal_.actions.push_back(
        action_on(pass_, node, PowerOff{std::move(emptying.drained.moves), test},
                  Reason::LowUtilization, std::move(message), emptying.saving));
    if (!test) return;
    wake_test_running_ = true;
    for (Source& other : sources_) {
      if (other.refused || acted_on(other) || wake_trusted(pass_, *other.node)) continue;
      refuse(other,
             {Reason::WakeNotVerified, "waits for its wake test: one node at a time is tested"});
    }
  }

  Pass& pass_;
  Proposal& proposal_;
  Candidates candidates_;
  DestinationChoice choice_;
  AwakeCount awake_count_;
  Savings savings_;
  Capacity capacity_;
  MeasuredLoad load_;
  std::vector<Source> sources_;
  std::size_t allowance_ = 0;
  bool wake_test_running_ = false;
};

}  // namespace

Proposal migrate(Pass& pass) {
  Proposal proposal;
  MigrateLever{pass, proposal}.run();
  return proposal;
}

}  // namespace kwatt::planner
