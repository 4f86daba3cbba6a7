#include "reconcilers/placement_view.hpp"

#include <algorithm>

#include "kube/indexes.hpp"
#include "models/power_curve.hpp"
#include "planner/plan.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::reconcilers {
namespace {

using placement::NodeInfo;
using placement::NodeTable;

constexpr std::string_view kPool = "kwatt.dev/pool";
constexpr Duration kTick{500};

void add(api::Resources& sum, const api::Resources& more) {
  sum.cpu += more.cpu;
  sum.memory += more.memory;
  sum.ephemeral_storage += more.ephemeral_storage;
  for (const auto& [name, amount] : more.extended) sum.extended[name] += amount;
}

bool is_candidate(const api::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [](const api::Taint& taint) {
    return taint.key == planner::names::kCandidateTaint;
  });
}

Permille share(Millicores used, Millicores full) {
  if (full.count() <= 0) return Permille{0};
  return Permille{std::clamp<std::int64_t>(used.count() * 1000 / full.count(), 0, 1000)};
}

// The newest load that may be believed now.
const telemetry::Reading* newest_load(const std::vector<telemetry::Reading>& readings,
                                      TimePoint now) {
  for (auto reading = readings.rbegin(); reading != readings.rend(); ++reading) {
    if (!reading->has_utilization) continue;
    return now <= reading->utilization_until ? &*reading : nullptr;
  }
  return nullptr;
}

}  // namespace

PlacementView::PlacementView(const Stores& stores, const telemetry::SampleStore& samples,
                             const Clock& clock, Publish publish, PlacementOptions options)
    : stores_(stores),
      samples_(samples),
      clock_(clock),
      publish_(std::move(publish)),
      options_(std::move(options)),
      held_([this](const std::string& node) { touch(node); }) {}

void PlacementView::touch(const std::string& node) {
  dirty_.insert(node);
  changed_.notify_all();
}

void PlacementView::node_changed(const kube::Delta<api::Node>& delta) {
  const auto& node = delta.now ? delta.now : delta.old;
  if (!node) return;
  if (delta.type != kube::Delta<api::Node>::Type::updated) rebuild_all_ = true;
  touch(node->meta.name);
}

void PlacementView::machine_changed(const kube::Delta<api::NodePower>& delta) {
  const auto& machine = delta.now ? delta.now : delta.old;
  if (!machine) return;
  const std::string& name = machine->meta.name;
  const api::Operation none;
  held_.operation(name, delta.now ? delta.now->status.operation : none,
                  stores_.pods.by_index(kube::kPodsByNode, name), clock_.now());
  touch(name);
}

void PlacementView::pod_changed(const kube::Delta<api::Pod>& delta) {
  const auto& pod = delta.now ? delta.now : delta.old;
  if (!pod) return;
  const bool gone = delta.type == kube::Delta<api::Pod>::Type::deleted;
  if (gone) held_.gone(*pod, clock_.now());
  if (gone || !pod->node_name.empty()) assumed_.erase(pod->uid);
  if (!pod->node_name.empty()) {
    const bool first = !gone && (!delta.old || delta.old->node_name.empty());
    if (first) held_.bound(*pod);
    touch(pod->node_name);
  }
}

void PlacementView::assume(const api::Pod& pod, const std::string& node) {
  assumed_[pod.uid] = {node, pod.spec, clock_.monotonic() + options_.assumed_for};
  touch(node);
}

void PlacementView::forget(const std::string& pod_uid) {
  const auto found = assumed_.find(pod_uid);
  if (found == assumed_.end()) return;
  const std::string node = found->second.node;
  assumed_.erase(found);
  touch(node);
}

bool PlacementView::trusted() const {
  return stores_.ready() && stores_.age(clock_.monotonic()) < options_.stale_after;
}

// Pods that are there or on their way, and the load they make.
void PlacementView::count_pods(NodeInfo& info) const {
  const auto readings = samples_.samples(info.name);
  const telemetry::Reading* load = newest_load(readings, clock_.now());
  Millicores since_then;  // requested by pods that the reading cannot have seen
  const auto count = [&](const api::Resources& need, bool unseen) {
    add(info.requested, need);
    ++info.requested.pods;
    if (unseen) since_then += need.cpu;
  };
  for (const auto& pod : stores_.pods.by_index(kube::kPodsByNode, info.name)) {
    if (pod->terminal()) continue;
    const bool unseen =
        load != nullptr && pod->scheduled_transition && *pod->scheduled_transition > load->at;
    count(pod->spec->requests, unseen);
  }
  for (const auto& [uid, assumed] : assumed_) {
    if (assumed.node == info.name) count(assumed.spec->requests, true);
  }
  const Millicores full = info.full_load();
  if (load != nullptr) {
    info.load_source = placement::LoadSource::measured;
    info.load = std::min(Permille{1000}, load->utilization + share(since_then, full));
  } else {
    info.load_source = placement::LoadSource::requested;
    info.load = share(info.requested.cpu, full);
  }
  // Reserved room is taken for others; it makes no load yet.
  info.reserved = held_.on(info.name);
  for (const placement::Reservation& room : info.reserved) {
    add(info.requested, room.need);
    ++info.requested.pods;
  }
}

NodeTable::Pointer PlacementView::build(const std::shared_ptr<const api::Node>& node) const {
  auto info = std::make_shared<NodeInfo>();
  info->name = node->meta.name;
  info->node = node;
  info->face = placement::face_of(*node);
  info->allocatable = node->allocatable;
  info->slow = node->meta.labels.get(planner::names::kLabelFrequency) == "low";
  info->capped = node->meta.labels.get(planner::names::kLabelCapped) == "true";
  info->idle_pool = node->meta.labels.get(kPool) == "idle" || is_candidate(*node);

  planner::NodeView seen;
  seen.node = node;
  seen.machine = stores_.machines.get(info->name);
  const api::Condition* ready = api::find_condition(node->conditions, "Ready");
  seen.ready = ready != nullptr && ready->status == "True";
  const api::PowerState state = seen.power_state();
  info->awake = seen.ready || state == api::PowerState::On || state == api::PowerState::Draining;
  info->leaving = seen.operation().kind == api::OperationKind::PowerOff;
  const api::PowerModelSpec none;
  const api::PowerModelSpec& spec = seen.machine ? seen.machine->spec.model : none;
  info->model = models::model_of(spec, node->allocatable.cpu);
  if (spec.ops_per_joule > 0) info->ops_per_joule = spec.ops_per_joule;
  count_pods(*info);
  if (options_.enrich) options_.enrich(*info);
  return info;
}

void PlacementView::flush() {
  if (!trusted()) {
    if (told_) publish_(nullptr);
    told_ = false;
    return;
  }
  if (rebuild_all_ || table_ == nullptr) {
    // The order is the store's, so a node that was not touched is found by walking along.
    std::vector<NodeTable::Pointer> nodes;
    stores_.nodes.for_each([&](const std::shared_ptr<const api::Node>& node) {
      const std::string& name = node->meta.name;
      const std::size_t at = table_ == nullptr ? 0 : table_->position(name);
      const bool known = table_ != nullptr && at < table_->size() && !dirty_.contains(name);
      nodes.push_back(known ? table_->nodes()[at] : build(node));
    });
    table_ = std::make_shared<const NodeTable>(std::move(nodes));
  } else {
    std::vector<std::pair<std::size_t, NodeTable::Pointer>> replaced;
    for (const std::string& name : dirty_) {
      const std::size_t at = table_->position(name);
      const auto node = stores_.nodes.get(name);
      if (at < table_->size() && node != nullptr) replaced.emplace_back(at, build(node));
    }
    if (replaced.empty() && told_) {
      dirty_.clear();
      return;
    }
    table_ = std::make_shared<const NodeTable>(table_->with(replaced));
  }
  dirty_.clear();
  rebuild_all_ = false;
  told_ = true;
  publish_(table_);
}

void PlacementView::refresh(std::size_t nodes) {
  held_.expire(clock_.now());
  for (auto entry = assumed_.begin(); entry != assumed_.end();) {
    if (clock_.monotonic() < entry->second.until) {
      ++entry;
      continue;
    }
    touch(entry->second.node);
    entry = assumed_.erase(entry);
  }
  if (table_ == nullptr || table_->size() == 0) return;
  for (std::size_t i = 0; i < std::min(nodes, table_->size()); ++i) {
    next_ = (next_ + 1) % table_->size();
    dirty_.insert(table_->nodes()[next_]->name);
  }
}

net::Task<void> PlacementView::run() {
  MonotonicPoint ticked = clock_.monotonic();
  for (;;) {
    flush();
    const bool notified = co_await changed_.wait_for(kTick);
    if (notified) co_await net::sleep(options_.gather);
    const MonotonicPoint now = clock_.monotonic();
    if (now - ticked < kTick) continue;
    ticked = now;
    const std::size_t size = table_ == nullptr ? 0 : table_->size();
    const auto rounds =
        static_cast<std::size_t>(std::max<std::int64_t>(1, options_.refresh_every / kTick));
    refresh(size / rounds + 1);
  }
}

}  // namespace kwatt::reconcilers
