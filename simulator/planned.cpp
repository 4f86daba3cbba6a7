#include "simulator/planned.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/request.hpp"
#include "simulator/planned_objects.hpp"

namespace kwatt::simulator {
namespace {

constexpr Duration kSamplesKept = std::chrono::minutes{15};
constexpr Duration kSampleEvery = std::chrono::seconds{10};
constexpr Duration kShortest = std::chrono::milliseconds{100};  // between two looks
constexpr std::uint64_t kTidyEvery = 1000;                      // passes
constexpr int kMostSteps = 32;  // that may follow each other without time passing

class Planned final : public Controller {
 public:
  Planned(const Simulation& simulation, std::string name, api::EnergyPolicySpec spec,
          OnActed on_acted)
      : name_(std::move(name)), spec_(std::move(spec)), on_acted_(std::move(on_acted)) {
    spec_.mode = api::Mode::Enforce;
    for (MachineId id = 0; id < simulation.size(); ++id) {
      nodes_.push_back(make_node(simulation, id, name_));
      by_name_[nodes_.back().node.meta.name] = id;
      if (api::matches(spec_.node_selector, nodes_.back().node.meta.labels)) {
        selected_.push_back(nodes_.back().node.meta.name);
      }
    }
    std::sort(selected_.begin(), selected_.end());
  }
  bool selects_any() const { return !selected_.empty(); }

  Result<Duration> act(Simulation& simulation) override {
    const TimePoint now = simulation.now();
    for (PlannedNode& node : nodes_) {
      observe(simulation, node);
      if (passes_ == 0) changed(simulation, node);
    }
    if (now >= sample_at_) {
      for (PlannedNode& node : nodes_) sample(simulation, node);
      sample_at_ = now + kSampleEvery;
    }
    if (now >= pass_at_) {
      pass(simulation);
      pass_at_ = now + spec_.interval;
    }
    TimePoint next = std::min(pass_at_, sample_at_);
    for (PlannedNode& node : nodes_) {
      carry_on(simulation, node);
      next = std::min(next, node.look_at);
    }
    return std::max<Duration>(kShortest, next - now);
  }

 private:
  // What kubelet and agent would say of the machine.
  void observe(Simulation& simulation, PlannedNode& node) {
    const bool on = simulation.machine(node.id).state() == MachineState::on;
    if (on) node.lease_renewed = true;
    if (node.ready == on) return;
    node.ready = on;
    for (api::Condition& condition : node.node.conditions) {
      if (condition.type != "Ready") continue;
      condition.status = on ? "True" : "False";
      condition.last_transition_time = simulation.now();
    }
    if (on) node.machine.status.report.boot_id = fmt::format("boot-{}", ++node.boots);
    if (!on) node.samples.clear();
    changed(simulation, node);
  }

  void sample(const Simulation& simulation, PlannedNode& node) const {
    const Machine& machine = simulation.machine(node.id);
    if (machine.state() != MachineState::on) return;
    const TimePoint now = simulation.now();
    node.samples.push_back({now, machine.utilization(), machine.busy(), machine.power(), true});
    const auto old = std::find_if(node.samples.begin(), node.samples.end(),
                                  [&](const auto& one) { return one.at >= now - kSamplesKept; });
    // In steps, so that not every sample moves all others.
    if (old - node.samples.begin() > 32) node.samples.erase(node.samples.begin(), old);
  }

  // Node object and machine follow each other.
  void changed(Simulation& simulation, PlannedNode& node) const {
    node.shown_node.reset();
    node.shown_machine.reset();
    const bool barred =
        node.node.unschedulable ||
        std::any_of(node.node.taints.begin(), node.node.taints.end(),
                    [](const api::Taint& taint) { return taint.effect != "PreferNoSchedule"; });
    simulation.set_open(node.id, node.ready && !barred);
    if (!node.ready) return;
    const AppliedSettings settings = settings_of(node.node, simulation.machine(node.id).spec());
    if (settings.mhz != simulation.machine(node.id).limit_mhz()) {
      simulation.limit_frequency(node.id, settings.mhz);
    }
    if (settings.cap_watts != simulation.machine(node.id).cap_watts()) {
      simulation.cap(node.id, settings.cap_watts);
    }
    api::AgentReport& report = node.machine.status.report;
    const planner::RequestNote note = planner::request_on(node.node);
    if (!note.id.empty()) report.applied_request = note.id;
    report.time = simulation.now();
    report.governor = settings.mhz > 0 ? "powersave" : "performance";
    report.requested_cap_watts = report.effective_cap_watts = settings.cap_watts;
    report.converged = true;
  }

  planner::NodeView view_of(Simulation& simulation, PlannedNode& node) {
    if (node.shown_node == nullptr) node.shown_node = std::make_shared<api::Node>(node.node);
    if (node.shown_machine == nullptr) {
      node.shown_machine = std::make_shared<api::NodePower>(node.machine);
    }
    planner::NodeView view;
    view.node = node.shown_node;
    view.machine = node.shown_machine;
    WorkId last = 0;
    bool any = false;
    for (const WorkId id : simulation.on_machine(node.id)) {
      if (any && id == last) continue;  // a second task of the same gang
      any = true;
      last = id;
      for (const auto& pod : pods_.pods_of(simulation, id)) {
        if (pod->node_name == view.node->meta.name) view.pods.push_back(pod);
      }
    }
    std::sort(view.pods.begin(), view.pods.end(), before);
    view.pods.erase(std::unique(view.pods.begin(), view.pods.end()), view.pods.end());
    view.samples = node.samples;
    view.model = node.model;
    view.zone = node.zone;
    view.ready = node.ready;
    view.has_driver = true;
    return view;
  }

  planner::Snapshot snapshot_of(Simulation& simulation) {
    planner::Snapshot snapshot;
    snapshot.now = simulation.now();
    snapshot.seq = ++passes_;
    snapshot.sync.synced = true;
    for (PlannedNode& node : nodes_) {
      snapshot.nodes.emplace(node.node.meta.name, view_of(simulation, node));
    }
    for (const WorkId id : simulation.queued()) {
      // What waits for low carbon waits behind a scheduling gate.
      if (simulation.work(id).held) continue;
      for (const auto& pod : pods_.pods_of(simulation, id)) snapshot.unbound.push_back(pod);
    }
    std::sort(snapshot.unbound.begin(), snapshot.unbound.end(), before);
    return snapshot;
  }

  void pass(Simulation& simulation) {
    if (passes_ % kTidyEvery == 0) pods_.tidy(simulation);
    planner::Snapshot snapshot = snapshot_of(simulation);
    planner::Reserved reserved;
    const planner::Plan plan = planner::plan(snapshot, name_, spec_, memory_, selected_, reserved);
    memory_ = plan.policy_memory;
    for (const auto& [name, memory] : plan.memory) {
      PlannedNode& node = nodes_[by_name_.at(name)];
      node.machine.status.memory = memory;
      node.shown_machine.reset();
      snapshot.nodes.at(name) = view_of(simulation, node);
    }
    for (const planner::Action& action : plan.actions) {
      if (planner::admit(snapshot, action, name_, spec_, selected_)) continue;
      PlannedNode& node = nodes_[by_name_.at(action.node)];
      node.machine.status = planner::begin(snapshot.nodes.at(action.node), action, name_, spec_,
                                           fmt::format("op-{}", ++operations_), simulation.now());
      node.shown_machine.reset();
      node.look_at = simulation.now();
      forget(node);
      snapshot.nodes.at(action.node) = view_of(simulation, node);
      if (on_acted_) on_acted_({simulation.now(), action});
    }
  }

  static void forget(PlannedNode& node) {
    node.read.reset();
    node.limit.reset();
    node.evictions.clear();
    node.reset_sent = node.lease_renewed = false;
  }

  // The steps of the operation under way that are due now.
  void carry_on(Simulation& simulation, PlannedNode& node) {
    const TimePoint now = simulation.now();
    for (int i = 0; i < kMostSteps && node.look_at <= now; ++i) {
      if (node.machine.status.operation.id.empty()) {
        node.look_at = TimePoint::max();
        return;
      }
      const planner::NodeView view = view_of(simulation, node);
      planner::Observation observation;
      observation.now = now;
      observation.node = &view;
      observation.lease_renewed_since_start = node.lease_renewed;
      observation.machine = std::exchange(node.read, std::nullopt);
      observation.evictions = std::exchange(node.evictions, {});
      observation.reset_sent = node.reset_sent;
      observation.limit = std::exchange(node.limit, std::nullopt);
      const planner::Step step = planner::next_step(node.machine.status, observation, spec_);
      const bool moved = step.next.operation.step != node.machine.status.operation.step;
      const api::AgentReport report = node.machine.status.report;
      node.machine.status = step.next;
      node.machine.status.report = report;
      if (moved) node.reset_sent = node.lease_renewed = false;
      for (const planner::Effect& effect : step.effects) perform(simulation, node, effect);
      changed(simulation, node);
      node.look_at = step.finished ? TimePoint::max() : now + step.again_after;
    }
    if (node.look_at <= now) node.look_at = now + kShortest;
  }

  void perform(Simulation& simulation, PlannedNode& node, const planner::Effect& effect) {
    using Kind = planner::ResetMachine::Kind;
    if (const auto* patch = std::get_if<planner::PatchNode>(&effect)) {
      apply(node.node, *patch, simulation.now());
    } else if (const auto* evict = std::get_if<planner::EvictPods>(&effect)) {
      for (const api::PodMove& move : evict->pods) evict_pod(simulation, node, move);
    } else if (const auto* reset = std::get_if<planner::ResetMachine>(&effect)) {
      node.reset_sent = true;
      if (reset->kind == Kind::on) {
        simulation.boot(node.id);
      } else {
        simulation.shut_down(node.id);
      }
    } else if (std::holds_alternative<planner::ReadMachine>(effect)) {
      node.read = power_state(simulation.machine(node.id).state());
    } else if (const auto* limit = std::get_if<planner::SetPowerLimit>(&effect)) {
      simulation.cap(node.id, limit->watts);
    } else {
      const api::AgentReport& report = node.machine.status.report;
      node.limit = planner::SeenLimit{simulation.machine(node.id).cap_watts(), report.cap_min_watts,
                                      report.cap_max_watts};
    }
  }

  void evict_pod(Simulation& simulation, PlannedNode& node, const api::PodMove& move) {
    using Outcome = planner::EvictionResult::Outcome;
    node.evictions.push_back({move.uid, Outcome::accepted, ""});
    const auto work = pods_.work_of(simulation, move.uid);
    if (!work) return;  // it has ended meanwhile
    std::optional<MachineId> to;
    if (const auto found = by_name_.find(move.node_name); found != by_name_.end()) {
      to = found->second;
    }
    simulation.evict(*work, to);
  }

  static bool before(const std::shared_ptr<const api::Pod>& a,
                     const std::shared_ptr<const api::Pod>& b) {
    if (a->namespace_name != b->namespace_name) return a->namespace_name < b->namespace_name;
    if (a->name != b->name) return a->name < b->name;
    return a->uid < b->uid;
  }

  std::string name_;
  api::EnergyPolicySpec spec_;
  OnActed on_acted_;
  std::vector<PlannedNode> nodes_;  // by MachineId
  std::map<std::string, MachineId> by_name_;
  std::vector<planner::NodeName> selected_;
  api::PolicyMemory memory_;
  PodBook pods_;
  TimePoint pass_at_{}, sample_at_{};
  std::uint64_t passes_ = 0, operations_ = 0;
};

}  // namespace

Result<std::unique_ptr<Controller>> make_planned(const Simulation& simulation,
                                                 const std::string& policy_name,
                                                 const api::EnergyPolicySpec& spec,
                                                 OnActed on_acted) {
  auto planned = std::make_unique<Planned>(simulation, policy_name, spec, std::move(on_acted));
  if (!planned->selects_any()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("policy {} selects none of the machines; their labels are "
                            "kubernetes.io/hostname and topology.kubernetes.io/zone",
                            policy_name));
  }
  return std::unique_ptr<Controller>(std::move(planned));
}

}  // namespace kwatt::simulator
