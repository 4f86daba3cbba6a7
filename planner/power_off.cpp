// Power off: nodes without workload pods for long enough, and people's overrides.
#include <algorithm>

#include <fmt/format.h>

#include "planner/capacity.hpp"
#include "planner/destinations.hpp"
#include "planner/drain.hpp"
#include "planner/levers.hpp"
#include "planner/pending.hpp"
#include "planner/propose.hpp"

namespace kwatt::planner {
namespace {

using std::chrono::minutes;

bool awake(const NodeView& node) {
  return node.power_state() == api::PowerState::On ||
         node.power_state() == api::PowerState::Unknown;
}

// Says more about a node than that it is in use.
bool lasting(Reason reason) {
  switch (reason) {
    case Reason::Excluded:
    case Reason::ControlPlane:
    case Reason::InProgress:
    case Reason::Manual:
    case Reason::DoNotDisrupt:
    case Reason::ForeignOwner:
    case Reason::NodeNotReady:
      return true;
    default:
      return false;
  }
}

class PowerOffLever {
 public:
  PowerOffLever(Pass& pass, Proposal& proposal, std::map<NodeName, api::NodeMemory>& next_memory)
      : pass_(pass),
        proposal_(proposal),
        next_memory_(next_memory),
        candidates_(pass.snapshot, pass.spec.disruption),
        choice_(pass),
        awake_count_(pass) {}

  void run() {
    settle(pass_);
    capacity_ = awake_capacity(pass_);
    load_ = measured_load(pass_);
    for (const NodeName& name : pass_.selected) {
      const auto at = pass_.snapshot.nodes.find(name);
      if (at == pass_.snapshot.nodes.end()) continue;
      const NodeView& node = at->second;
      remember_idle(node);
      if (awake(node)) {
        look_at(node);
      } else if (!dormant(node)) {
        refuse(node, {Reason::InProgress, "on its way off"});
      }
    }
    // The most energy saved first; the sort is stable over names.
    std::stable_sort(idle_.begin(), idle_.end(), [](const NodeView* a, const NodeView* b) {
      return a->model.curve.idle() > b->model.curve.idle();
    });
    count_recent();
    for (const NodeView* node : idle_) decide(*node);
  }

 private:
  bool in_use(const NodeView& node) const {
    return workload_count(node) > 0 || pass_.what_if.incoming(node.name()) > 0;
  }

  // memory.idleSince: since when an awake node has had no workload pod.
  void remember_idle(const NodeView& node) {
    const bool idle = awake(node) && workload_count(node) == 0;
    const auto& known = node.memory().idle_since;
    if (idle == known.has_value()) return;
    api::NodeMemory& next = next_memory_.try_emplace(node.name(), node.memory()).first->second;
    if (idle) {
      next.idle_since = pass_.snapshot.now;
    } else {
      next.idle_since.reset();
    }
  }

  void refuse(const NodeView& node, Verdict verdict) {
    proposal_.refusals.insert_or_assign(node.name(), std::move(verdict));
  }

  void look_at(const NodeView& node) {
    const api::PowerOffSpec& spec = pass_.spec.power_off;
    if (!spec.enabled) return refuse(node, {Reason::LeverDisabled, "powerOff.enabled is false"});
    const bool held_off = override_of(node, pass_.snapshot.now).kind == Override::Kind::off;
    const auto protection = protected_from_off(pass_, node);
    if (protection && lasting(protection->reason)) return refuse(node, *protection);
    const bool expecting = pass_.what_if.incoming(node.name()) > 0;
    if (expecting || (!held_off && in_use(node))) return refuse(node, use_of(node));
    if (protection) {
      wake_when_over(node);
      return refuse(node, *protection);
    }
    if (node.volume_attached && workload_count(node) == 0) {
      return refuse(node, {Reason::InUse, "a VolumeAttachment still names the node"});
    }
    if (auto verdict = waited_for()) return refuse(node, std::move(*verdict));
    if (spec.wake_test == api::WakeTest::Manual && !wake_trusted(pass_, node) &&
        !wake_test_requested(node)) {
      return refuse(node, {Reason::WakeNotVerified,
                           fmt::format("run `kubectl kwatt wake-test {}` first", node.name())});
    }
    if (!held_off && !idle_long_enough(node)) return;
    idle_.push_back(&node);
  }

  // Nothing is switched off while pods, or buffers, wait for resources.
  std::optional<Verdict> waited_for() const {
    const auto& waiting = pass_.demand->waiting;
    if (waiting.empty()) return std::nullopt;
    for (const auto& pod : waiting) {
      if (buffer_of(*pod).empty()) {
        return Verdict{Reason::PendingPods, "pods wait for resources: nothing is switched off"};
      }
    }
    return Verdict{Reason::Headroom, fmt::format("CapacityBuffer {} has not all of its room",
                                                 buffer_of(*waiting.front()))};
  }

  Verdict use_of(const NodeView& node) const {
    const std::size_t pods = workload_count(node);
    const std::int64_t incoming = pass_.what_if.incoming(node.name());
    const auto kept = pass_.demand->kept_for.find(node.name());
    if (pods == 0 && kept != pass_.demand->kept_for.end()) {
      return {Reason::Headroom, fmt::format("CapacityBuffer {} has its room here", kept->second)};
    }
    if (pods == 0 || incoming > 0) {
      return {Reason::InUse, fmt::format("{} more {} expected here", incoming,
                                         incoming == 1 ? "pod is" : "pods are")};
    }
    return {Reason::InUse, fmt::format("{} workload {}", pods, pods == 1 ? "pod" : "pods")};
  }

  // The verdicts of protected_from_off that time alone ends.
  void wake_when_over(const NodeView& node) {
    const TimePoint now = pass_.snapshot.now;
    const api::NodeMemory& memory = node.memory();
    if (memory.cool_down_until) wake_after(proposal_, *memory.cool_down_until - now);
    if (memory.next_attempt) wake_after(proposal_, *memory.next_attempt - now);
    if (memory.last_on) {
      wake_after(proposal_, *memory.last_on + pass_.spec.power_off.min_on_duration - now);
    }
  }

  bool idle_long_enough(const NodeView& node) {
    const Duration wanted = pass_.spec.power_off.idle_for;
    const Duration idle = idle_time(node);
    if (idle < wanted) {
      wake_after(proposal_, wanted - idle);
      refuse(node, {Reason::IdleWait, fmt::format("idle for {} of {}", format_go_duration(idle),
                                                  format_go_duration(wanted))});
      return false;
    }
    // A wake test is not about energy.
    return to_test(node) || pays_off(node, idle);
  }

  bool to_test(const NodeView& node) const {
    return !wake_trusted(pass_, node) || wake_test_requested(node);
  }

  Duration idle_time(const NodeView& node) const {
    const auto& since = node.memory().idle_since;
    return since ? std::max(Duration{0}, pass_.snapshot.now - *since) : Duration{0};
  }

  // Break-even without a forecast, as in the ski-rental problem: a node that has been idle for as
  // long as its off time must last to pay for shutdown and boot is expected to stay so as long
  // again. That never costs more than twice what a perfect forecast would.
  bool pays_off(const NodeView& node, Duration idle) {
    const models::PowerModel& model = node.model;
    const std::int64_t cost = model.boot_energy.count() + model.shutdown_energy.count();
    if (!model.specified || cost <= 0 || model.curve.idle().count() <= 0) return true;
    const Duration off_for = std::max(idle, pass_.spec.power_off.min_off_duration);
    const Duration even{cost * 1000 / model.curve.idle().count()};
    if (off_for >= even) return true;
    wake_after(proposal_, even - idle);
    refuse(node, {Reason::NotWorthIt,
                  fmt::format("shutdown and boot take {} J, as much as {} of idling; idle for {}",
                              cost / 1000, format_go_duration(even), format_go_duration(idle))});
    return false;
  }

  // What maxPerMinute and the wake tests in flight leave.
  void count_recent() {
    std::int64_t recent = 0;
    const TimePoint since = pass_.snapshot.now - minutes{1};
    for (const NodeName& name : pass_.selected) {
      const auto at = pass_.snapshot.nodes.find(name);
      if (at == pass_.snapshot.nodes.end()) continue;
      const api::Operation& operation = at->second.operation();
      const bool off = !operation.id.empty() && operation.kind == api::OperationKind::PowerOff;
      if (off ? operation.started_at > since : at->second.memory().last_off > since) ++recent;
      wake_test_running_ = wake_test_running_ || (!operation.id.empty() && operation.then_wake);
    }
    allowance_ = pass_.spec.power_off.max_per_minute - recent;
  }

  void decide(const NodeView& node) {
    const bool test = to_test(node);
    if (test && wake_test_running_) {
      return refuse(
          node, {Reason::WakeNotVerified, "waits for its wake test: one node at a time is tested"});
    }
    if (allowance_ <= 0) {
      wake_after(proposal_, minutes{1});
      return refuse(node, {Reason::RateLimited, fmt::format("powerOff.maxPerMinute {} is used up",
                                                            pass_.spec.power_off.max_per_minute)});
    }
    MeasuredLoad load = load_;
    const MeasuredLoad own = measured_load(pass_, node);
    load.cpu -= own.cpu;
    if (workload_count(node) == 0) load.busy -= own.busy;  // else it goes where the pods go
    if (auto verdict = overloads(pass_, load)) return refuse(node, std::move(*verdict));
    if (auto verdict = awake_count_.take(node)) return refuse(node, std::move(*verdict));
    const Capacity contributed =
        pass_.what_if.is_destination(node.name()) ? capacity_of(pass_, node) : Capacity{};
    const std::size_t mark = pass_.what_if.mark();
    auto emptied = drain(pass_, candidates_, choice_, node);
    if (auto* verdict = std::get_if<Verdict>(&emptied)) {
      awake_count_.put_back(node);
      return refuse(node, std::move(*verdict));
    }
    Drained& drained = std::get<Drained>(emptied);
    const Capacity rest = after_moves(pass_, capacity_ - contributed, drained);
    if (!headroom_kept(rest, pass_.spec.power_on.headroom)) {
      pass_.what_if.rollback(mark);
      awake_count_.put_back(node);
      return refuse(node, {Reason::Headroom,
                           "without it: " + headroom_text(rest, pass_.spec.power_on.headroom)});
    }
    capacity_ = rest;
    load_ = load;
    --allowance_;
    wake_test_running_ = wake_test_running_ || test;
    propose(node, std::move(drained), test);
  }

  void propose(const NodeView& node, Drained drained, bool test) {
    const bool held_off = override_of(node, pass_.snapshot.now).kind == Override::Kind::off;
    const Milliwatts saving = node.model.curve.idle();
    std::string message;
    if (held_off) {
      message = fmt::format("held off by {}; {} pods move", names::kOverride, drained.moves.size());
    } else if (test) {
      message = "wake test: off and on again, before power-off is trusted";
    } else {
      message = fmt::format("no workload pod for {}; saves {}", format_go_duration(idle_time(node)),
                            watts_text(saving));
    }
    proposal_.actions.push_back(action_on(pass_, node, PowerOff{std::move(drained.moves), test},
                                          held_off ? Reason::Manual : Reason::Idle,
                                          std::move(message), test ? Milliwatts{} : saving));
  }

  Pass& pass_;
  Proposal& proposal_;
  std::map<NodeName, api::NodeMemory>& next_memory_;
  Candidates candidates_;
  DestinationChoice choice_;
  AwakeCount awake_count_;
  Capacity capacity_;
  MeasuredLoad load_;
  std::vector<const NodeView*> idle_;
  std::int64_t allowance_ = 0;
  bool wake_test_running_ = false;
};

}  // namespace

Proposal power_off(Pass& pass, std::map<NodeName, api::NodeMemory>& next_memory) {
  Proposal proposal;
  PowerOffLever{pass, proposal, next_memory}.run();
  return proposal;
}

}  // namespace kwatt::planner
