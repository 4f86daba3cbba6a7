#pragma once
// One node, its machine and an executor that does what steps say: for tests of the step machines.
// Time moves only by tick(). Everything the real executor keeps in memory is lost by crash().
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/steps.hpp"
#include "planner/steps_common.hpp"
#include "test/planner/world.hpp"

namespace kwatt::test {

class Stage {
 public:
  using EvictionResult = planner::EvictionResult;

  api::Node node;
  api::NodePowerStatus status;
  api::EnergyPolicySpec spec = enforcing();
  TimePoint now = kNoon;
  std::vector<api::Pod> pods;

  // The machine.
  api::PowerState machine = api::PowerState::On;
  Duration shutdown_time = seconds{20}, boot_time = seconds{60};
  bool bmc_answers = true;
  bool heeds_graceful = true, heeds_on = true;
  bool volume_attached = false;
  bool ready = true;
  Duration ready_lag = seconds{40};
  std::function<EvictionResult::Outcome(const api::Pod&)> on_evict;
  Duration pod_grace = seconds{5};
  bool agent_answers = true;
  // Its BMC's power limit: what is in force (0: none), what it takes, how it rounds what it takes
  // and whether it heeds a write at all.
  planner::SeenLimit limit{0, 60, 140};
  std::int64_t limit_step = 1;
  bool heeds_limit = true;
  bool has_driver = true;
  std::optional<planner::Reason> reset_refusal;  // of a graceful shutdown

  // What happened.
  std::vector<std::int64_t> limits;  // written to the BMC
  std::vector<std::string> resets;  // "graceful_shutdown" …, with "!" if a workload pod was there
  std::vector<planner::Step> ends;  // finished ones
  std::vector<std::string> steps;   // names, in order
  std::vector<std::string> messages;
  int commits = 0;
  std::string unsafe;  // first violation seen

  Stage() {
    node.meta.name = "n1";
    node.meta.uid = "uid-n1";
    node.meta.resource_version = "1";
    node.conditions.push_back({"Ready", "True", "", "", 0, now - hours{1}});
    status.power_state = api::PowerState::On;
  }

  api::Pod& pod(const std::string& key, std::function<void(PodBuilder&)> with = {}) {
    PodBuilder builder{key};
    builder.on("n1");
    if (with) with(builder);
    api::Pod made = builder.pod();
    made.spec = std::make_shared<api::PodTemplate>(builder.spec());
    pods.push_back(std::move(made));
    return pods.back();
  }
  void remove_pod(const std::string& key) {
    std::erase_if(pods, [&](const api::Pod& p) { return p.key() == key; });
  }

  planner::NodeView view() const {
    planner::NodeView view;
    auto object = std::make_shared<api::Node>(node);
    for (api::Condition& c : object->conditions) {
      if (c.type == "Ready") {
        c.status = ready ? "True" : "False";
        c.last_transition_time = ready_since_;
      }
    }
    view.node = object;
    auto power = std::make_shared<api::NodePower>();
    power->meta.name = "n1";
    power->status = status;
    power->spec.bmc.address = "lab://127.0.0.1:1/machines/n1";
    view.machine = power;
    for (const api::Pod& p : pods) view.pods.push_back(std::make_shared<api::Pod>(p));
    view.ready = ready;
    view.has_driver = has_driver;
    view.volume_attached = volume_attached;
    return view;
  }

  void begin(planner::What what, planner::Reason reason = planner::Reason::Idle) {
    planner::Action action;
    action.node = "n1";
    action.what = std::move(what);
    action.reason = reason;
    action.message = "as decided";
    status = planner::begin(view(), action, "default", spec, "op-1", now);
    note_step();
  }
  // A PowerOff that moves all workload pods.
  void begin_drain() {
    planner::PowerOff off;
    for (const api::Pod& p : pods) {
      if (p.workload()) off.moves.push_back({p.namespace_name, p.name, p.uid, "n2", "", {}});
    }
    begin(off);
  }
  bool busy() const { return !status.operation.id.empty(); }

  // One look: next_step(), commit, effects. `crash_after_commit`: the effects never happen.
  planner::Step look(bool crash_after_commit = false) {
    const planner::NodeView seen = view();
    planner::Observation observation;
    observation.now = now;
    observation.node = &seen;
    observation.lease_renewed_since_start = lease_renewed_;
    observation.machine = std::exchange(read_, std::nullopt);
    observation.bmc_error = std::exchange(bmc_error_, {});
    observation.evictions = std::exchange(evictions_, {});
    observation.reset_sent = reset_sent_;
    observation.bmc_refusal = std::exchange(bmc_refusal_, std::nullopt);
    observation.limit = std::exchange(limit_read_, std::nullopt);
    planner::Step step = planner::next_step(status, observation, spec);
    if (step.next != status) ++commits;
    const bool moved = step.next.operation.step != status.operation.step;
    status = step.next;
    if (moved) {
      reset_sent_ = false;
      lease_renewed_ = false;
      note_step();
    }
    if (!step.message.empty()) messages.push_back(step.message);
    if (step.finished) ends.push_back(step);
    if (crash_after_commit) {
      crash();
      return step;
    }
    for (const planner::Effect& effect : step.effects) perform(effect);
    return step;
  }

  // The process is gone, and starts again with the API alone.
  void crash() {
    read_.reset();
    bmc_error_.clear();
    bmc_refusal_.reset();
    limit_read_.reset();
    evictions_.clear();
    reset_sent_ = false;
    lease_renewed_ = false;
  }

  void tick(Duration by = seconds{1}) {
    now += by;
    if (change_at_ && now >= *change_at_) {
      machine = becomes_;
      change_at_.reset();
    }
    const bool runs = machine == api::PowerState::On;
    if (runs) {
      lease_renewed_ = true;
      last_heartbeat_ = now;
      // A kubelet with our NoExecute taint cannot start its network: not Ready before it is gone.
      const bool startable = !planner::steps::has_taint(node, planner::names::kPowerOffTaint);
      if (!ready && startable) set_ready(true);
    } else if (ready && now - last_heartbeat_ >= ready_lag) {
      set_ready(false);
    }
    if (runs) {
      std::erase_if(pods, [&](const api::Pod& p) {
        return p.deletion_timestamp && now - *p.deletion_timestamp >= pod_grace;
      });
      const api::Taint taint{std::string(planner::names::kPowerOffTaint), "", "NoExecute", {}};
      if (planner::steps::has_taint(node, taint.key)) {
        for (api::Pod& p : pods) {
          if (!p.deletion_timestamp && !p.mirror && !api::tolerates(p.spec->tolerations, taint)) {
            p.deletion_timestamp = now;
          }
        }
      }
    }
    if (agent_answers && runs) answer_as_agent();
  }

  // Looks and ticks until nothing is in progress; false: still busy after `patience`.
  bool run(Duration patience = hours{1}) {
    const TimePoint end = now + patience;
    while (busy() && now < end) {
      const planner::Step step = look();
      if (!busy()) return true;
      tick(std::clamp<Duration>(step.again_after, seconds{1}, minutes{10}));
    }
    return !busy();
  }
  // Until the operation is at this step.
  bool run_to(std::string_view step, Duration patience = hours{1}) {
    const TimePoint end = now + patience;
    while (busy() && status.operation.step != step && now < end) {
      look();
      if (status.operation.step != step) tick();
    }
    return busy() && status.operation.step == step;
  }

  void set_machine(api::PowerState state) {
    machine = state;
    change_at_.reset();
  }
  void set_ready(bool value) {
    ready = value;
    ready_since_ = now;
  }
  void mark_reset_sent() { reset_sent_ = true; }
  bool tainted(std::string_view key) const { return planner::steps::has_taint(node, key); }
  bool clean() const {
    return !tainted(planner::names::kCandidateTaint) && !tainted(planner::names::kPowerOffTaint) &&
           !node.unschedulable && !node.meta.labels.contains(planner::names::kLabelPower);
  }

 private:
  void note_step() {
    if (busy()) steps.push_back(status.operation.step);
  }

  void perform(const planner::Effect& effect) {
    if (const auto* patch = std::get_if<planner::PatchNode>(&effect)) return apply(*patch);
    if (const auto* evict = std::get_if<planner::EvictPods>(&effect)) {
      for (const api::PodMove& move : evict->pods) evictions_.push_back(evict_one(move));
      return;
    }
    if (const auto* reset = std::get_if<planner::ResetMachine>(&effect)) return send(reset->kind);
    if (const auto* set = std::get_if<planner::SetPowerLimit>(&effect))
      return set_limit(set->watts);
    if (std::holds_alternative<planner::ReadPowerLimit>(effect) && bmc_answers) {
      limit_read_ = limit;
    } else if (bmc_answers) {
      read_ = machine;
    } else {
      bmc_error_ = "connection refused";
    }
  }

  void set_limit(std::int64_t watts) {
    limits.push_back(watts);
    // Whatever is written, what was there before must be on record.
    if (!status.bmc.original_known && unsafe.empty()) unsafe = "a write without a record";
    if (!bmc_answers) {
      bmc_error_ = "connection refused";
    } else if (watts > 0 && (watts < limit.lowest || watts > limit.highest)) {
      bmc_refusal_ = planner::Reason::OutOfRange;
      bmc_error_ = "not in the supported range";
    } else if (heeds_limit) {
      limit.watts = watts / limit_step * limit_step;
    }
  }

  EvictionResult evict_one(const api::PodMove& move) {
    using Outcome = EvictionResult::Outcome;
    for (api::Pod& p : pods) {
      if (p.uid != move.uid) continue;
      const Outcome outcome = on_evict ? on_evict(p) : Outcome::accepted;
      if (outcome == Outcome::accepted && !p.deletion_timestamp) p.deletion_timestamp = now;
      return {move.uid, outcome, outcome == Outcome::accepted ? "" : "not now"};
    }
    return {move.uid, Outcome::accepted, ""};
  }

  void send(planner::ResetMachine::Kind kind) {
    using Kind = planner::ResetMachine::Kind;
    const bool occupied =
        std::any_of(pods.begin(), pods.end(), [](const api::Pod& p) { return p.workload(); });
    std::string name = kind == Kind::on                  ? "on"
                       : kind == Kind::graceful_shutdown ? "graceful_shutdown"
                                                         : "force_off";
    if (occupied && kind != Kind::on) {
      name += "!";
      if (unsafe.empty()) unsafe = name + " with a workload pod on the node";
    }
    resets.push_back(name);
    if (!bmc_answers) {
      bmc_error_ = "connection refused";
      return;
    }
    if (kind == Kind::graceful_shutdown && reset_refusal) {
      bmc_refusal_ = reset_refusal;
      bmc_error_ = "the machine does not offer GracefulShutdown";
      return;
    }
    reset_sent_ = true;
    using State = api::PowerState;
    if (kind == Kind::on && machine == State::Off && heeds_on) change(State::PoweringOn, State::On);
    if (kind == Kind::graceful_shutdown && machine == State::On && heeds_graceful) {
      change(State::PoweringOff, State::Off);
    }
    if (kind == Kind::force_off && machine != State::Off) {
      machine = State::PoweringOff;
      becomes_ = State::Off;
      change_at_ = now + seconds{1};
    }
  }

  void change(api::PowerState through, api::PowerState to) {
    machine = through;
    becomes_ = to;
    change_at_ = now + (to == api::PowerState::On ? boot_time : shutdown_time);
  }

  void apply(const planner::PatchNode& patch) {
    if (patch.unschedulable) node.unschedulable = *patch.unschedulable;
    for (const std::string& key : patch.remove_taints) {
      std::erase_if(node.taints, [&](const api::Taint& t) { return t.key == key; });
    }
    for (const api::Taint& taint : patch.add_taints) {
      if (!planner::steps::has_taint(node, taint.key)) node.taints.push_back(taint);
    }
    for (const auto& [key, value] : patch.set_annotations) node.meta.annotations.set(key, value);
    for (const auto& [key, value] : patch.set_labels) node.meta.labels.set(key, value);
    for (const std::string& key : patch.remove_annotations) node.meta.annotations.erase(key);
    for (const std::string& key : patch.remove_labels) node.meta.labels.erase(key);
    if (patch.suspended_condition) {
      std::erase_if(node.conditions, [](const auto& c) { return c.type == "Suspended"; });
      if (*patch.suspended_condition) {
        node.conditions.push_back({"Suspended", "True", "", "", 0, now});
      }
    }
  }

  void answer_as_agent() {
    const planner::RequestNote note = planner::request_on(node);
    if (note.id.empty() || status.report.applied_request == note.id) return;
    status.report.applied_request = note.id;
    status.report.boot_id = "boot-1";
    status.report.converged = true;
  }

  std::optional<api::PowerState> read_;
  std::string bmc_error_;
  std::vector<EvictionResult> evictions_;
  std::optional<planner::Reason> bmc_refusal_;
  std::optional<planner::SeenLimit> limit_read_;
  bool reset_sent_ = false, lease_renewed_ = false;
  std::optional<TimePoint> change_at_;
  api::PowerState becomes_ = api::PowerState::On;
  TimePoint ready_since_ = kNoon - hours{1}, last_heartbeat_ = kNoon;
};

}  // namespace kwatt::test
