// Power on: for pods that wait for resources, high load, headroom, and people's overrides.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/capacity.hpp"
#include "planner/destinations.hpp"
#include "planner/filters/node_face.hpp"
#include "planner/levers.hpp"
#include "planner/pending.hpp"
#include "planner/propose.hpp"
#include "planner/verdicts.hpp"
#include "planner/wake_choice.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;
using std::chrono::minutes;
using std::chrono::seconds;

// On their way up, or held on by people: coming capacity, not to be woken twice.
bool coming(const NodeView& node) {
  const api::Operation& operation = node.operation();
  if (!operation.id.empty()) return operation.kind == api::OperationKind::PowerOn;
  return node.power_state() == api::PowerState::PoweringOn;
}

// Why a dormant node cannot be woken now; nullopt: it can.
std::optional<Verdict> not_wakeable(const NodeView& node, TimePoint now, Proposal& proposal) {
  const api::NodeMemory& memory = node.memory();
  if (coming(node)) return Verdict{Reason::InProgress, "powering on"};
  if (!node.operation().id.empty()) {
    return Verdict{Reason::InProgress,
                   fmt::format("operation {} is in progress", node.operation().id)};
  }
  if (node.node->meta.annotations.get(names::kExclude) == "true") {
    return Verdict{Reason::Excluded, fmt::format("annotated {}=true", names::kExclude)};
  }
  if (override_of(node, now).kind == Override::Kind::off) {
    return Verdict{Reason::Manual, fmt::format("held off by {}", names::kOverride)};
  }
  if (!node.has_driver) return no_driver(node);
  if (node.node->meta.deletion_timestamp) {
    return Verdict{Reason::ForeignOwner, "the Node object is being deleted"};
  }
  if (filters::foreign_cordon(node)) {
    return Verdict{Reason::ForeignOwner, "somebody else has cordoned the node"};
  }
  if (memory.next_attempt && *memory.next_attempt > now) {
    wake_after(proposal, *memory.next_attempt - now);
    const bool failed = node.power_state() == api::PowerState::WakeFailed;
    return Verdict{failed ? Reason::WakeFailed : Reason::CoolDown,
                   fmt::format("{} failures; next attempt at {}", memory.failure_count,
                               format_rfc3339(*memory.next_attempt))};
  }
  if (memory.cool_down_until && *memory.cool_down_until > now) {
    wake_after(proposal, *memory.cool_down_until - now);
    return Verdict{Reason::CoolDown,
                   fmt::format("left alone until {}", format_rfc3339(*memory.cool_down_until))};
  }
  return std::nullopt;
}

bool resting(const NodeView& node, const Pass& pass) {
  const auto& last_off = node.memory().last_off;
  return last_off && pass.snapshot.now - *last_off < pass.spec.power_off.min_off_duration;
}

class PowerOnLever {
 public:
  PowerOnLever(Pass& pass, Proposal& proposal) : pass_(pass), proposal_(proposal) {
    std::int64_t started = 0;
    for (const NodeName& name : pass.selected) {
      const auto at = pass.snapshot.nodes.find(name);
      if (at == pass.snapshot.nodes.end()) continue;
      const NodeView& node = at->second;
      if (started_lately(node)) ++started;
      if (dormant(node)) classify(node);
    }
    const std::int64_t left = pass.spec.power_on.max_per_minute - started;
    allowance_ = left > 0 ? static_cast<std::size_t>(left) : 0;
  }

  void run(const api::PolicyMemory& memory, api::PolicyMemory& next_memory,
           std::vector<std::string>& pending) {
    const Demand& demand = settle(pass_);
    for (const PodPtr& pod : demand.waiting) {
      if (buffer_of(*pod).empty()) pending.push_back(pod->key());
    }
    // What is woken here is not there yet: the levers after this one must not count on it.
    const std::size_t mark = pass_.what_if.mark();
    for (const NodeView* node : coming_) pass_.what_if.assume_awake(node->name());
    held_on();
    waiting_pods(demand);
    high_load(memory, next_memory);
    headroom();
    pass_.what_if.rollback(mark);
    for (const WakeCandidate& left : candidates_) refuse(left);
  }

 private:
  bool started_lately(const NodeView& node) const {
    const TimePoint since = pass_.snapshot.now - minutes{1};
    const api::Operation& operation = node.operation();
    if (!operation.id.empty()) {
      return operation.kind == api::OperationKind::PowerOn && operation.started_at > since;
    }
    return node.memory().last_on > since;
  }

  void classify(const NodeView& node) {
    if (auto verdict = not_wakeable(node, pass_.snapshot.now, proposal_)) {
      if (coming(node)) coming_.push_back(&node);
      proposal_.refusals.emplace(node.name(), std::move(*verdict));
      return;
    }
    // Pods that wait beat minOffDuration, but only where nothing else holds them.
    const int rank = (resting(node, pass_) ? 1 : 0) + (node.memory().failure_count > 0 ? 2 : 0);
    candidates_.push_back({&node, rank});
  }

  void wake(const NodeView& node, Reason reason, std::string message, Milliwatts increase) {
    proposal_.actions.push_back(
        action_on(pass_, node, PowerOn{}, reason, std::move(message), -increase));
    std::erase_if(candidates_, [&](const WakeCandidate& c) { return c.node == &node; });
    --allowance_;
  }

  // kwatt.dev/override: on.
  void held_on() {
    const std::vector<WakeCandidate> all = candidates_;
    for (const WakeCandidate& c : all) {
      if (override_of(*c.node, pass_.snapshot.now).kind != Override::Kind::on) continue;
      if (!allowed()) return;
      pass_.what_if.assume_awake(c.node->name());
      wake(*c.node, Reason::Manual, fmt::format("held on by {}", names::kOverride),
           wake_increase(*c.node, Millicores{0}, pass_.spec.power_off));
    }
  }

  void waiting_pods(const Demand& demand) {
    std::vector<PodPtr> pods;
    for (const PodPtr& pod : demand.waiting) {
      const Duration left =
          pass_.spec.power_on.pending_for - pending_since(*pod, pass_.snapshot.now);
      if (left > Duration{0}) {
        wake_after(proposal_, left);
      } else if (!pass_.what_if.place(pod)) {  // not even on nodes that are coming up
        pods.push_back(pod);
      }
    }
    if (pods.empty()) return;
    if (!allowed()) return;
    for (const WakeChoice& choice : choose_nodes(pass_, pods, candidates_, allowance_)) {
      std::vector<std::string> names;
      std::set<std::string> buffers;
      for (const PodPtr& pod : choice.pods) {
        const std::string_view buffer = buffer_of(*pod);
        if (buffer.empty())
          names.push_back(pod->key());
        else
          buffers.emplace(buffer);
      }
      if (names.empty()) {
        wake(*choice.node, Reason::Headroom,
             fmt::format("room for {} pods of CapacityBuffer {}; adds {}", choice.pods.size(),
                         list_text({buffers.begin(), buffers.end()}), watts_text(choice.increase)),
             choice.increase);
        continue;
      }
      wake(*choice.node, Reason::PendingPods,
           fmt::format("woken for {} pending {}: {}; adds {}", names.size(),
                       names.size() == 1 ? "pod" : "pods", list_text(names),
                       watts_text(choice.increase)),
           choice.increase);
    }
    // Without a node left to allow, the rest of the pods would need more.
    if (!pods.empty()) allowed();
  }

  void high_load(const api::PolicyMemory& memory, api::PolicyMemory& next_memory) {
    const api::PowerOnSpec& spec = pass_.spec.power_on;
    const auto mean = measured_load(pass_).mean();
    if (!mean || *mean <= percent(spec.high_utilization_percent)) {
      next_memory.high_since.reset();
      return;
    }
    const TimePoint now = pass_.snapshot.now;
    next_memory.high_since = memory.high_since.value_or(now);
    const Duration high_for = now - *next_memory.high_since;
    if (high_for < spec.high_for) {
      wake_after(proposal_, spec.high_for - high_for);
      return;
    }
    // What is coming up already may be all that is needed.
    if (!coming_.empty() || !proposal_.actions.empty()) return;
    const NodeView* node = cheapest();
    if (node == nullptr || !allowed()) return;
    wake(*node, Reason::HighLoad,
         fmt::format("awake nodes are at {} % (above {} %) for {}", mean->count() / 10,
                     spec.high_utilization_percent, format_go_duration(high_for)),
         wake_increase(*node, Millicores{0}, pass_.spec.power_off));
    // In Recommend nothing will happen, and the advice stands.
    if (pass_.spec.mode == api::Mode::Enforce && !pass_.spec.suspend) next_memory.high_since = now;
  }

  void headroom() {
    const api::HeadroomSpec& spec = pass_.spec.power_on.headroom;
    Capacity capacity = awake_capacity(pass_);
    while (!headroom_kept(capacity, spec)) {
      const NodeView* node = cheapest();
      if (node == nullptr || !allowed()) return;
      const std::string message = headroom_text(capacity, spec);
      pass_.what_if.assume_awake(node->name());
      capacity = capacity + capacity_of(pass_, *node);
      wake(*node, Reason::Headroom, message,
           wake_increase(*node, Millicores{0}, pass_.spec.power_off));
    }
  }

  // The candidate that gives a core for the least power; nothing urgent wakes nodes before
  // minOffDuration, or those that failed before.
  const NodeView* cheapest() const {
    const NodeView* best = nullptr;
    std::int64_t best_cost = 0;
    for (const WakeCandidate& c : candidates_) {
      if (c.rank != 0) continue;
      const Millicores cpu = c.node->node->allocatable.cpu;
      const std::int64_t cores = std::max<std::int64_t>(1, cpu.count() / 1000);
      const std::int64_t cost =
          wake_increase(*c.node, cpu / 2, pass_.spec.power_off).count() / cores;
      if (best == nullptr || cost < best_cost) {
        best = c.node;
        best_cost = cost;
      }
    }
    return best;
  }

  // Notes that more was wanted than maxPerMinute allows.
  bool allowed() {
    if (allowance_ > 0) return true;
    limited_ = true;
    wake_after(proposal_, minutes{1});
    return false;
  }

  void refuse(const WakeCandidate& left) {
    Verdict verdict{Reason::Idle, "stays off: nothing needs it"};
    const api::Node& node = *left.node->node;
    if (override_of(*left.node, pass_.snapshot.now).kind == Override::Kind::not_understood) {
      verdict = {Reason::Manual,
                 override_problem(node.meta.annotations.get(names::kOverride)) + ": stays off"};
    } else if (limited_) {
      verdict = {Reason::RateLimited, fmt::format("powerOn.maxPerMinute {} is used up",
                                                  pass_.spec.power_on.max_per_minute)};
    } else if (resting(*left.node, pass_)) {
      const Duration off = pass_.snapshot.now - *left.node->memory().last_off;
      verdict = {Reason::MinOffTime,
                 fmt::format("off for {} of at least {}; pods that fit nowhere else may wake it",
                             format_go_duration(off),
                             format_go_duration(pass_.spec.power_off.min_off_duration))};
      wake_after(proposal_, pass_.spec.power_off.min_off_duration - off);
    }
    proposal_.refusals.emplace(left.node->name(), std::move(verdict));
  }

  Pass& pass_;
  Proposal& proposal_;
  std::vector<const NodeView*> coming_;
  std::vector<WakeCandidate> candidates_;  // by name
  std::size_t allowance_ = 0;
  bool limited_ = false;
};

}  // namespace

Proposal power_on(Pass& pass, const api::PolicyMemory& memory, api::PolicyMemory& next_memory,
                  std::vector<std::string>& pending) {
  Proposal proposal;
  if (!pass.spec.power_on.enabled) {
    for (const NodeName& name : pass.selected) {
      const auto at = pass.snapshot.nodes.find(name);
      if (at == pass.snapshot.nodes.end() || !dormant(at->second)) continue;
      proposal.refusals[name] = {Reason::LeverDisabled, "powerOn.enabled is false"};
    }
    return proposal;
  }
  PowerOnLever lever{pass, proposal};
  lever.run(memory, next_memory, pending);
  return proposal;
}

}  // namespace kwatt::planner
