#pragma once
// Builders for snapshots: a case names only what it is about, everything else has a sensible
// default.
//
//   World w;
//   w.node("n1").cpu(4).memory_gib(16).zone("a").idle_for(minutes{20});
//   w.pod("default/web-1").on("n1").cpu_milli(500).owner("ReplicaSet", "web");
//   Snapshot s = w.snapshot();
//
// Defaults of a node: On, Ready, 4 cores, 16 GiB, 110 pods, a lab driver, woken successfully
// before, on for a day, a 50..150 W curve. Of a pod: 100m and 128 MiB, ReplicaSet "web" for
// "web-1", Running and Ready once it has a node, else unschedulable for a minute.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/levers.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::test {

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr std::int64_t kMiB = 1024 * 1024;
inline constexpr std::int64_t kGiB = 1024 * kMiB;
// A Friday noon; all times of a world are relative to it.
inline const TimePoint kNoon = *parse_rfc3339("2026-11-20T12:00:00Z");

class NodeBuilder {
 public:
  explicit NodeBuilder(const std::string& name) {
    node_.meta.name = name;
    node_.meta.uid = "uid-" + name;
    node_.meta.resource_version = "1";
    node_.meta.creation_timestamp = kNoon - hours{24 * 30};
    node_.meta.labels = {{"kubernetes.io/hostname", name}};
    cpu(4).memory_gib(16).pods(110);
    machine_.meta.name = name;
    machine_.meta.uid = "npw-" + name;
    machine_.meta.resource_version = "1";
    machine_.spec.bmc.address = "lab+http://127.0.0.1:1/machines/" + name;
    watts(50, 150).boot(seconds{60}, 0).shutdown(seconds{20});
    machine_.status.power_state = api::PowerState::On;
    machine_.status.memory.last_on = kNoon - hours{24};
    machine_.status.memory.wake_verified_at = kNoon - hours{24};
  }

  NodeBuilder& cpu(std::int64_t cores) { return cpu_milli(cores * 1000); }
  NodeBuilder& cpu_milli(std::int64_t milli) {
    node_.allocatable.cpu = Millicores{milli};
    return *this;
  }
  NodeBuilder& memory_gib(std::int64_t gib) {
    node_.allocatable.memory = Bytes{gib * kGiB};
    return *this;
  }
  NodeBuilder& ephemeral_gib(std::int64_t gib) {
    node_.allocatable.ephemeral_storage = Bytes{gib * kGiB};
    return *this;
  }
  NodeBuilder& pods(std::int64_t count) {
    node_.allocatable.pods = count;
    return *this;
  }
  NodeBuilder& extended(const std::string& resource, std::int64_t count) {
    node_.allocatable.extended[resource] = count;
    return *this;
  }
  NodeBuilder& zone(const std::string& zone) { return label("topology.kubernetes.io/zone", zone); }
  NodeBuilder& label(const std::string& key, const std::string& value) {
    node_.meta.labels.set(key, value);
    return *this;
  }
  NodeBuilder& no_label(const std::string& key) {
    node_.meta.labels.erase(key);
    return *this;
  }
  NodeBuilder& annotation(const std::string& key, const std::string& value) {
    node_.meta.annotations.set(key, value);
    return *this;
  }
  NodeBuilder& taint(const std::string& key, const std::string& value, const std::string& effect) {
    node_.taints.push_back({key, value, effect, {}});
    return *this;
  }
  NodeBuilder& cordoned(bool by_us = false) {
    node_.unschedulable = true;
    machine_.status.memory.cordoned_by_us = by_us;
    return *this;
  }
  NodeBuilder& not_ready() {
    ready_ = false;
    return *this;
  }
  NodeBuilder& created(Duration ago) {
    node_.meta.creation_timestamp = kNoon - ago;
    return *this;
  }
  NodeBuilder& control_plane() {
    control_plane_ = true;
    label("node-role.kubernetes.io/control-plane", "");
    return *this;
  }
  NodeBuilder& own_node() {
    own_node_ = true;
    return *this;
  }
  NodeBuilder& volume_attached() {
    volume_attached_ = true;
    return *this;
  }
  NodeBuilder& no_driver() {
    machine_.spec.bmc.address.clear();
    return *this;
  }
  // Its driver can only wake it.
  NodeBuilder& only_wakes() {
    can_go_off_ = false;
    return *this;
  }
  NodeBuilder& no_machine() {
    has_machine_ = false;
    return *this;
  }

  // Powered off by us an hour ago, as the off sequence leaves it: cordoned, tainted, not ready.
  NodeBuilder& off(Duration ago = hours{1}) {
    state(api::PowerState::Off);
    api::NodeMemory& memory = machine_.status.memory;
    memory.powered_off_by_us = true;
    memory.last_off = kNoon - ago;
    memory.last_on = kNoon - hours{48};
    memory.owner_policy = "default";
    taint("kwatt.dev/power-off", "", "NoExecute");
    taint("node.kubernetes.io/unreachable", "", "NoExecute");
    taint("node.kubernetes.io/unreachable", "", "NoSchedule");
    taint("node.kubernetes.io/unschedulable", "", "NoSchedule");
    return cordoned(true).not_ready();
  }
  NodeBuilder& state(api::PowerState state) {
    machine_.status.power_state = state;
    machine_.status.power_state_since = kNoon - hours{1};
    return *this;
  }
  NodeBuilder& on_for(Duration ago) {
    machine_.status.memory.last_on = kNoon - ago;
    return *this;
  }
  NodeBuilder& idle_for(Duration ago) {
    machine_.status.memory.idle_since = kNoon - ago;
    return *this;
  }
  NodeBuilder& wake_not_verified() {
    machine_.status.memory.wake_verified_at.reset();
    return *this;
  }
  NodeBuilder& cool_down(Duration more) {
    machine_.status.memory.cool_down_until = kNoon + more;
    return *this;
  }
  NodeBuilder& quarantined(Duration more) {
    machine_.status.memory.next_attempt = kNoon + more;
    machine_.status.memory.failure_count = 1;
    return *this;
  }
  NodeBuilder& cycles(std::int64_t today, const std::string& day = "2026-11-20") {
    machine_.status.memory.cycles_today = today;
    machine_.status.memory.cycles_day = day;
    return *this;
  }
  NodeBuilder& operation(api::OperationKind kind, const std::string& step = "",
                         Duration started = seconds{30}) {
    api::Operation& operation = machine_.status.operation;
    operation.id = "op-" + node_.meta.name;
    operation.kind = kind;
    operation.step = step;
    operation.policy = "default";
    operation.started_at = operation.step_started_at = kNoon - started;
    return *this;
  }

  // A straight power line; ops per joule and the curve through machine().spec.model if needed.
  NodeBuilder& watts(std::int64_t idle, std::int64_t max) {
    machine_.spec.model.idle_milliwatts = idle * 1000;
    machine_.spec.model.max_milliwatts = max * 1000;
    return *this;
  }
  // Watts at 0, 10 … 100 % load.
  NodeBuilder& curve(const std::vector<std::int64_t>& watts) {
    for (const std::int64_t one : watts) {
      machine_.spec.model.curve_milliwatts.push_back(one * 1000);
    }
    return *this;
  }
  NodeBuilder& no_model() {
    machine_.spec.model = {};
    return *this;
  }
  NodeBuilder& boot(Duration time, std::int64_t joules) {
    machine_.spec.model.boot_seconds = time.count() / 1000;
    machine_.spec.model.boot_joules = joules;
    return *this;
  }
  NodeBuilder& shutdown(Duration time) {
    machine_.spec.model.shutdown_seconds = time.count() / 1000;
    return *this;
  }

  // A reading every 10 s over the last `span`, ending now; watts 0: no meter.
  NodeBuilder& utilization(std::int64_t percent, std::int64_t watts = 0,
                           Duration span = minutes{15}) {
    return utilization(percent, percent, watts, span);
  }
  NodeBuilder& utilization(std::int64_t percent, std::int64_t busy_percent, std::int64_t watts,
                           Duration span, Duration newest_age = Duration{0}) {
    samples_.clear();
    for (Duration age = span; age >= Duration{0}; age -= seconds{10}) {
      samples_.push_back({kNoon - newest_age - age, kwatt::percent(percent),
                          kwatt::percent(busy_percent), kwatt::watts(watts), watts > 0});
    }
    return *this;
  }
  NodeBuilder& sample(planner::TelemetrySample sample) {
    samples_.push_back(sample);
    return *this;
  }
  // Of the newest power: who measured it, and how long it may be believed.
  NodeBuilder& meter(std::string_view word, TimePoint until) {
    newest_.meter = word;
    newest_.power_until = until;
    return *this;
  }

  api::Node& node() { return node_; }
  api::NodePower& machine() { return machine_; }

 private:
  friend class World;
  api::Node node_;
  api::NodePower machine_;
  std::vector<planner::TelemetrySample> samples_;
  planner::Newest newest_;
  bool ready_ = true, control_plane_ = false, own_node_ = false, volume_attached_ = false;
  bool can_go_off_ = true;
  bool has_machine_ = true;
};

class PodBuilder {
 public:
  explicit PodBuilder(const std::string& key) {
    const std::size_t slash = key.find('/');
    pod_.namespace_name = key.substr(0, slash);
    pod_.name = key.substr(slash + 1);
    pod_.uid = "uid-" + key;
    pod_.resource_version = "1";
    pod_.creation_timestamp = kNoon - hours{2};
    pod_.scheduled = api::PodScheduled::unschedulable;
    pod_.scheduled_transition = kNoon - minutes{1};
    spec_.requests.pods = 1;
    spec_.scheduler_name = "default-scheduler";
    cpu_milli(100).memory_mib(128);
    owner("ReplicaSet", pod_.name.substr(0, pod_.name.rfind('-')));
  }

  PodBuilder& on(const std::string& node) {
    pod_.node_name = node;
    pod_.phase = api::PodPhase::running;
    pod_.ready = true;
    pod_.scheduled = api::PodScheduled::yes;
    return *this;
  }
  PodBuilder& cpu_milli(std::int64_t milli) {
    spec_.requests.cpu = Millicores{milli};
    return *this;
  }
  PodBuilder& memory_mib(std::int64_t mib) {
    spec_.requests.memory = Bytes{mib * kMiB};
    return *this;
  }
  PodBuilder& ephemeral_gib(std::int64_t gib) {
    spec_.requests.ephemeral_storage = Bytes{gib * kGiB};
    return *this;
  }
  PodBuilder& extended(const std::string& resource, std::int64_t count) {
    spec_.requests.extended[resource] = count;
    return *this;
  }
  PodBuilder& owner(const std::string& kind, const std::string& name) {
    return owner(kind, name, kind + "-" + pod_.namespace_name + "-" + name);
  }
  PodBuilder& owner(const std::string& kind, const std::string& name, const std::string& uid) {
    pod_.owner = std::make_shared<api::OwnerReference>(api::OwnerReference{kind, name, uid, true});
    return *this;
  }
  PodBuilder& bare() {
    pod_.owner = nullptr;
    return *this;
  }
  PodBuilder& daemon() { return owner("DaemonSet", "agent").tolerate("", "Exists", "", ""); }
  PodBuilder& mirror() {
    pod_.mirror = true;
    pod_.owner = nullptr;
    return tolerate("", "Exists", "", "NoExecute");
  }
  PodBuilder& label(const std::string& key, const std::string& value) {
    spec_.labels.set(key, value);
    return *this;
  }
  PodBuilder& annotation(const std::string& key, const std::string& value) {
    pod_.annotations.set(key, value);
    return *this;
  }
  PodBuilder& selector(const std::string& key, const std::string& value) {
    spec_.node_selector.set(key, value);
    return *this;
  }
  PodBuilder& tolerate(const std::string& key, const std::string& op, const std::string& value,
                       const std::string& effect) {
    spec_.tolerations.push_back({key, op, value, effect, {}});
    return *this;
  }
  // Keep away from (or close to) pods with this label, per topology domain.
  PodBuilder& anti_affinity(const std::string& key, const std::string& value,
                            const std::string& topology = "kubernetes.io/hostname") {
    spec_.required_pod_anti_affinity.push_back(term(key, value, topology));
    return *this;
  }
  PodBuilder& affinity(const std::string& key, const std::string& value,
                       const std::string& topology = "kubernetes.io/hostname") {
    spec_.required_pod_affinity.push_back(term(key, value, topology));
    return *this;
  }
  PodBuilder& spread(const std::string& key, const std::string& value, const std::string& topology,
                     std::int64_t max_skew = 1) {
    api::TopologySpreadConstraint constraint;
    constraint.max_skew = max_skew;
    constraint.topology_key = topology;
    constraint.label_selector.match_labels.set(key, value);
    spec_.topology_spread.push_back(constraint);
    return *this;
  }
  PodBuilder& host_port(std::int64_t port, const std::string& protocol = "TCP",
                        const std::string& ip = "") {
    spec_.host_ports.push_back({port, protocol, ip});
    return *this;
  }
  PodBuilder& claim(const std::string& name) {
    spec_.claims.push_back(name);
    return *this;
  }
  PodBuilder& local_storage() {
    spec_.local_storage = true;
    return *this;
  }
  PodBuilder& gated() {
    spec_.scheduling_gated = true;
    pod_.scheduled = api::PodScheduled::gated;
    return *this;
  }
  PodBuilder& pending_for(Duration ago) {
    pod_.scheduled_transition = kNoon - ago;
    return *this;
  }
  PodBuilder& phase(api::PodPhase phase) {
    pod_.phase = phase;
    pod_.ready = phase == api::PodPhase::running;
    return *this;
  }
  PodBuilder& terminating() {
    pod_.deletion_timestamp = kNoon;
    return *this;
  }

  api::Pod& pod() { return pod_; }
  api::PodTemplate& spec() { return spec_; }

 private:
  friend class World;
  static api::PodAffinityTerm term(const std::string& key, const std::string& value,
                                   const std::string& topology) {
    api::PodAffinityTerm term;
    term.label_selector.match_labels.set(key, value);
    term.has_label_selector = true;
    term.topology_key = topology;
    return term;
  }
  api::Pod pod_;
  api::PodTemplate spec_;
};

class World {
 public:
  TimePoint now = kNoon;
  std::map<std::string, std::int64_t> replicas;  // by owner uid: "ReplicaSet-default-web"

  // The node of this name, made at its first mention. References stay valid.
  NodeBuilder& node(const std::string& name) { return get(nodes_, node_index_, name); }
  PodBuilder& pod(const std::string& key) { return get(pods_, pod_index_, key); }

  // A budget over pods with this label, in the namespace of `key`.
  api::PodDisruptionBudget& budget(const std::string& key, const std::string& label,
                                   const std::string& value, std::int64_t disruptions_allowed) {
    api::PodDisruptionBudget budget;
    const std::size_t slash = key.find('/');
    budget.meta.namespace_name = key.substr(0, slash);
    budget.meta.name = key.substr(slash + 1);
    budget.has_selector = true;
    budget.selector.match_labels.set(label, value);
    budget.disruptions_allowed = disruptions_allowed;
    budgets_.push_back(budget);
    return budgets_.back();
  }
  // A claim; volume "" is not bound yet.
  void claim(const std::string& key, const std::string& volume) {
    api::PersistentVolumeClaim claim;
    const std::size_t slash = key.find('/');
    claim.meta.namespace_name = key.substr(0, slash);
    claim.meta.name = key.substr(slash + 1);
    claim.volume_name = volume;
    claims_.push_back(claim);
  }
  // A volume reachable only from nodes with this label; key "": from everywhere.
  void volume(const std::string& name, const std::string& key, const std::string& value) {
    api::PersistentVolume volume;
    volume.meta.name = name;
    if (!key.empty()) {
      volume.required_node_affinity.push_back({{{key, "In", {value}}}, {}});
    }
    volumes_.push_back(volume);
  }

  planner::Snapshot snapshot() const {
    planner::Snapshot s;
    s.now = now;
    s.seq = 1;
    s.sync.synced = true;
    for (const NodeBuilder& b : nodes_) s.nodes.emplace(b.node_.meta.name, view(b));
    std::vector<std::shared_ptr<const api::PodTemplate>> interned;
    std::vector<std::shared_ptr<const api::Pod>> pods;
    for (const PodBuilder& b : pods_) {
      auto pod = std::make_shared<api::Pod>(b.pod_);
      pod->spec = intern(interned, b.spec_);
      pods.push_back(std::move(pod));
    }
    std::sort(pods.begin(), pods.end(),
              [](const auto& a, const auto& b) { return a->key() < b->key(); });
    for (auto& pod : pods) {
      if (pod->node_name.empty()) {
        s.unbound.push_back(pod);
      } else if (auto it = s.nodes.find(pod->node_name); it != s.nodes.end()) {
        it->second.pods.push_back(pod);
      }
    }
    for (const auto& b : budgets_) {
      s.budgets.push_back(std::make_shared<api::PodDisruptionBudget>(b));
    }
    for (const auto& c : claims_) {
      s.claims[c.meta.namespace_name + "/" + c.meta.name] =
          std::make_shared<api::PersistentVolumeClaim>(c);
    }
    for (const auto& v : volumes_) {
      s.volumes[v.meta.name] = std::make_shared<api::PersistentVolume>(v);
    }
    s.replicas = replicas;
    return s;
  }

 private:
  template <class Builder>
  static Builder& get(std::deque<Builder>& all, std::map<std::string, Builder*>& index,
                      const std::string& key) {
    auto it = index.find(key);
    if (it == index.end()) it = index.emplace(key, &all.emplace_back(key)).first;
    return *it->second;
  }
  planner::NodeView view(const NodeBuilder& b) const {
    planner::NodeView v;
    auto node = std::make_shared<api::Node>(b.node_);
    api::Condition ready{"Ready", b.ready_ ? "True" : "False", "", "", 0, kNoon - hours{1}};
    node->conditions.push_back(ready);
    v.node = node;
    if (b.has_machine_) v.machine = std::make_shared<api::NodePower>(b.machine_);
    v.samples = b.samples_;
    v.newest = b.newest_;
    v.model = models::model_of(b.has_machine_ ? b.machine_.spec.model : api::PowerModelSpec{},
                               b.node_.allocatable.cpu);
    v.zone = b.node_.meta.labels.get("topology.kubernetes.io/zone");
    v.ready = b.ready_;
    v.control_plane = b.control_plane_;
    v.own_node = b.own_node_;
    v.has_driver = b.has_machine_ && !b.machine_.spec.bmc.address.empty();
    v.can_go_off = b.can_go_off_;
    v.volume_attached = b.volume_attached_;
    return v;
  }
  static std::shared_ptr<const api::PodTemplate> intern(
      std::vector<std::shared_ptr<const api::PodTemplate>>& all, const api::PodTemplate& spec) {
    for (const auto& known : all) {
      if (*known == spec) return known;
    }
    return all.emplace_back(std::make_shared<api::PodTemplate>(spec));
  }

  std::deque<NodeBuilder> nodes_;
  std::deque<PodBuilder> pods_;
  std::map<std::string, NodeBuilder*> node_index_;
  std::map<std::string, PodBuilder*> pod_index_;
  std::vector<api::PodDisruptionBudget> budgets_;
  std::vector<api::PersistentVolumeClaim> claims_;
  std::vector<api::PersistentVolume> volumes_;
};

// A policy that acts on everything; cases change what they are about.
inline api::EnergyPolicySpec enforcing() {
  api::EnergyPolicySpec spec;
  spec.mode = api::Mode::Enforce;
  spec.power_on.headroom = {0, 0};
  spec.disruption.budgets = {api::Budget{"", "100%", "", Duration{0}, {}, "", true}};
  return spec;
}

inline std::vector<planner::NodeName> all_nodes(const planner::Snapshot& snapshot) {
  std::vector<planner::NodeName> names;
  for (const auto& [name, view] : snapshot.nodes) names.push_back(name);
  return names;
}

// Everything a lever needs, for calling one alone: `OnePass p{w.snapshot(), spec};
// migrate(p.pass)`.
struct OnePass {
  planner::Snapshot snapshot;
  api::EnergyPolicySpec spec;
  std::string policy_name = "default";
  std::vector<planner::NodeName> selected;
  planner::Reserved reserved;
  planner::WhatIf what_if;
  planner::Pass pass;

  OnePass(planner::Snapshot s, api::EnergyPolicySpec sp)
      : snapshot(std::move(s)),
        spec(std::move(sp)),
        selected(all_nodes(snapshot)),
        what_if(snapshot, reserved),
        pass{snapshot, policy_name, spec, selected, what_if} {}
  OnePass(const OnePass&) = delete;
  OnePass& operator=(const OnePass&) = delete;
};

}  // namespace kwatt::test
