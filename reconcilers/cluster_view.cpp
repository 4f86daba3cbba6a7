#include "reconcilers/cluster_view.hpp"

#include <algorithm>
#include <tuple>

#include "kube/indexes.hpp"
#include "models/power_curve.hpp"
#include "reconcilers/buffers.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kMaintenanceNamespace = "medik8s-leases";

// kubeadm's label and taint, and their older name.
bool is_control_plane(const api::Node& node) {
  for (const std::string_view key :
       {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}) {
    if (node.meta.labels.contains(key)) return true;
    for (const api::Taint& taint : node.taints) {
      if (taint.key == key) return true;
    }
  }
  return false;
}

bool by_key(const std::shared_ptr<const api::Pod>& a, const std::shared_ptr<const api::Pod>& b) {
  return std::tie(a->namespace_name, a->name) < std::tie(b->namespace_name, b->name);
}

}  // namespace

ClusterView::ClusterView(const Stores& stores, const telemetry::SampleStore& samples,
                         const Clock& clock, ViewOptions options,
                         std::function<std::string(const std::string&)> driver_problem)
    : stores_(stores),
      samples_(samples),
      clock_(clock),
      options_(std::move(options)),
      driver_problem_(std::move(driver_problem)) {}

std::shared_ptr<const api::Node> ClusterView::node(const std::string& name) {
  return node_writes_.overlay(name, stores_.nodes.get(name));
}

std::shared_ptr<const api::NodePower> ClusterView::machine(const std::string& name) {
  return machine_writes_.overlay(name, stores_.machines.get(name));
}

void ClusterView::wrote_node(std::string from_version, std::shared_ptr<const api::Node> now) {
  const std::string name = now->meta.name;
  node_writes_.wrote(name, std::move(from_version), std::move(now));
}

void ClusterView::wrote_machine(std::string from_version,
                                std::shared_ptr<const api::NodePower> now) {
  const std::string name = now->meta.name;
  machine_writes_.wrote(name, std::move(from_version), std::move(now));
}

planner::SyncState ClusterView::sync() const {
  planner::SyncState state;
  state.age = stores_.age(clock_.monotonic());
  state.synced = stores_.ready() && state.age < options_.stale_after &&
                 (others_ == nullptr || others_->ready());
  return state;
}

void ClusterView::fill(planner::NodeView& view, std::shared_ptr<const api::Node> node) {
  view.node = std::move(node);
  const std::string& name = view.node->meta.name;
  view.machine = machine(name);
  view.zone = view.node->meta.labels.get(kZone);
  const api::Condition* ready = api::find_condition(view.node->conditions, "Ready");
  view.ready = ready != nullptr && ready->status == "True";
  view.control_plane = is_control_plane(*view.node);
  view.own_node = !options_.own_node.empty() && name == options_.own_node;
  const api::PowerModelSpec none;
  view.model =
      models::model_of(view.machine ? view.machine->spec.model : none, view.node->allocatable.cpu);
  if (view.machine != nullptr && !view.machine->spec.bmc.address.empty()) {
    const std::string& address = view.machine->spec.bmc.address;
    view.driver_problem = driver_problem_(address);
    view.has_driver = view.driver_problem.empty();
    if (address.starts_with("wol:")) view.can_go_off = view.machine->status.report.can_power_off;
  }
  fill_owners(view);
  fill_samples(view);
}

void ClusterView::fill_samples(planner::NodeView& view) {
  const std::string& name = view.node->meta.name;
  const std::vector<telemetry::Reading> readings = samples_.samples(name);
  power_history_.observe(name, readings, environment(name));
  planner::Newest& newest = view.newest;
  view.samples.reserve(readings.size());
  for (const telemetry::Reading& reading : readings) {
    planner::TelemetrySample sample;
    sample.at = reading.at;
    sample.utilization = reading.utilization;
    sample.busy = reading.busy;
    sample.has_utilization = reading.has_utilization;
    sample.power = reading.power.value_or(Milliwatts{0});
    sample.has_power = reading.power.has_value();
    sample.from_agent = reading.from_agent;
    view.samples.push_back(sample);
    if (reading.has_utilization) newest.utilization_until = reading.utilization_until;
    if (!reading.power) continue;
    newest.power_at = reading.power_at;
    newest.power_until = reading.power_until;
    newest.meter = to_string(reading.power_source);
    newest.whole_machine = reading.whole_machine;
  }
  const bool metered = newest.power_until && clock_.now() <= *newest.power_until;
  if (!metered) view.fit = power_history_.fit(name);
  view.learned = power_history_.learned(name);
}

const telemetry::Environment* ClusterView::environment(const std::string& node) const {
  return environment_ == nullptr ? nullptr : environment_->find(node, clock_.now());
}

ClusterView::Knowledge ClusterView::knowledge(const std::string& name) {
  const std::vector<telemetry::Reading> readings = samples_.samples(name);
  const telemetry::Environment* air = environment(name);
  power_history_.observe(name, readings, air);
  Knowledge out;
  out.learned = power_history_.learn(name);
  const auto newest =
      std::find_if(readings.rbegin(), readings.rend(),
                   [](const telemetry::Reading& reading) { return reading.has_utilization; });
  if (newest != readings.rend() && clock_.now() <= newest->utilization_until) {
    out.state = state_of(*newest, air);
  }
  return out;
}

// Who else has a say about the node.
void ClusterView::fill_owners(planner::NodeView& view) const {
  if (others_ == nullptr) return;
  const api::Node& node = *view.node;
  const auto lease =
      others_->maintenance.get(kube::KeyView{kMaintenanceNamespace, "node-" + node.meta.name});
  if (lease != nullptr && !lease->holder_identity.empty()) {
    // A time that cannot be read does not make a lease end.
    const auto renewed = parse_rfc3339(lease->renew_time);
    const auto lasts = std::chrono::seconds{lease->lease_duration_seconds};
    if (!renewed || clock_.now() < *renewed + lasts) view.maintenance = lease->holder_identity;
  }
  if (!others_->has_health_checks) return;
  others_->health_checks.for_each([&](const std::shared_ptr<const api::NodeHealthCheck>& check) {
    if (view.health_check.empty() && api::matches(check->selector, node.meta.labels)) {
      view.health_check = check->meta.name;
    }
  });
}

void ClusterView::add_buffers(planner::Snapshot& snapshot) const {
  if (others_ == nullptr || !others_->has_buffers) return;
  const std::size_t real = snapshot.unbound.size();
  others_->buffers.for_each([&](const std::shared_ptr<const api::CapacityBuffer>& buffer) {
    if (buffer->template_name.empty()) return;
    const auto shape =
        others_->templates.get(kube::KeyView{buffer->meta.namespace_name, buffer->template_name});
    if (shape == nullptr) return;
    for (auto& pod : buffer_pods(*buffer, shape->spec)) snapshot.unbound.push_back(std::move(pod));
  });
  if (snapshot.unbound.size() == real) return;
  std::sort(snapshot.unbound.begin(), snapshot.unbound.end(), by_key);
}

std::unique_ptr<planner::NodeView> ClusterView::node_view(const std::string& name) {
  auto object = node(name);
  if (object == nullptr) return nullptr;
  auto view = std::make_unique<planner::NodeView>();
  fill(*view, std::move(object));
  for (const auto& pod : stores_.pods.by_index(kube::kPodsByNode, name)) {
    view->pods.push_back(pod);
  }
  std::sort(view->pods.begin(), view->pods.end(), by_key);
  stores_.attachments.for_each([&](const std::shared_ptr<const api::VolumeAttachment>& a) {
    if (a->node_name == name) view->volume_attached = true;
  });
  return view;
}

std::shared_ptr<planner::Snapshot> ClusterView::snapshot() {
  auto snapshot = std::make_shared<planner::Snapshot>();
  snapshot->now = clock_.now();
  snapshot->seq = ++seq_;
  snapshot->sync = sync();
  stores_.nodes.for_each([&](const std::shared_ptr<const api::Node>& cached) {
    auto& view = snapshot->nodes[cached->meta.name];
    fill(view, node_writes_.overlay(cached->meta.name, cached));
  });
  // The store is sorted by namespace and name, so each node's list is too.
  stores_.pods.for_each([&](const std::shared_ptr<const api::Pod>& pod) {
    if (pod->node_name.empty()) {
      snapshot->unbound.push_back(pod);
      return;
    }
    const auto found = snapshot->nodes.find(pod->node_name);
    if (found != snapshot->nodes.end()) found->second.pods.push_back(pod);
  });
  stores_.attachments.for_each([&](const std::shared_ptr<const api::VolumeAttachment>& a) {
    const auto found = snapshot->nodes.find(a->node_name);
    if (found != snapshot->nodes.end()) found->second.volume_attached = true;
  });
  stores_.budgets.for_each([&](const auto& budget) { snapshot->budgets.push_back(budget); });
  stores_.claims.for_each([&](const auto& claim) {
    snapshot->claims.emplace(claim->meta.namespace_name + "/" + claim->meta.name, claim);
  });
  stores_.volumes.for_each(
      [&](const auto& volume) { snapshot->volumes.emplace(volume->meta.name, volume); });
  add_buffers(*snapshot);
  const auto count_replicas = [&](const std::shared_ptr<const api::Workload>& workload) {
    snapshot->replicas[workload->meta.uid] = workload->replicas;
  };
  stores_.replica_sets.for_each(count_replicas);
  stores_.stateful_sets.for_each(count_replicas);
  return snapshot;
}

}  // namespace kwatt::reconcilers
