#include "planner/what_if.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "planner/destinations.hpp"
#include "planner/room.hpp"

namespace kwatt::planner {
namespace {

using filters::Amounts;
using filters::NodeFace;

constexpr std::int64_t kNowhere = -1;

// A DaemonSet seen on some node: what it will take on a node that is woken.
struct Daemon {
  std::string uid;
  ClassId pod_class = 0;
};

}  // namespace

struct WhatIf::Impl {
  // What rollback() has to take back, newest last.
  struct Undo {
    enum class Kind { added, taken, tier, woken, located } kind = Kind::added;
    NodeId node = 0;
    ClassId pod_class = 0;
    bool terminating = false, incoming = false;
    Tier tier = Tier::none;
    NodeFace face;
    Amounts amounts;
    std::string uid;
    std::optional<std::int64_t> location;
  };

  const Snapshot& snapshot;
  std::vector<const NodeView*> views;
  std::vector<NodeFace> faces;
  PodIndex index;
  Room room;
  std::vector<std::int64_t> incoming;
  std::unordered_map<std::string, std::int64_t> locations;  // by uid, of pods that are not where
                                                            // their nodeName says
  std::vector<Undo> log;
  std::uint64_t freed = 1;                   // grows whenever room may have appeared
  std::vector<std::uint64_t> nowhere_since;  // by class: `freed` when it fitted nowhere
  std::optional<std::vector<Daemon>> daemons;

  Impl(const Snapshot& s, const Reserved& reserved);

  std::optional<NodeId> id_of(const NodeName& name) const;
  std::optional<NodeId> location_of(const api::Pod& pod) const;
  bool passes(ClassId pod_class, NodeId node);
  void add(const api::Pod& pod, NodeId node);
  void take_off(const api::Pod& pod);
  void locate(const std::string& uid, std::int64_t where);
  void set_tier(NodeId node, Tier tier);
  void wake(NodeId node);
  Amounts daemons_for(NodeId node);
  void collect_daemons();
  void undo(Undo& entry);
  void rollback(std::size_t mark);
  bool known_nowhere(ClassId pod_class) const {
    return pod_class < nowhere_since.size() && nowhere_since[pod_class] == freed;
  }
};

namespace {

std::vector<const NodeView*> views_of(const Snapshot& snapshot) {
  std::vector<const NodeView*> views;
  views.reserve(snapshot.nodes.size());
  for (const auto& [name, view] : snapshot.nodes) views.push_back(&view);
  return views;
}

std::vector<NodeFace> faces_of(const std::vector<const NodeView*>& views) {
  std::vector<NodeFace> faces;
  faces.reserve(views.size());
  for (const NodeView* view : views) faces.push_back(filters::face_of(*view, false));
  return faces;
}

std::vector<Amounts> allocatable_of(const std::vector<const NodeView*>& views, PodIndex& index) {
  std::vector<Amounts> amounts;
  amounts.reserve(views.size());
  for (const NodeView* view : views) {
    amounts.push_back(filters::amounts_of(view->node->allocatable, index.resource_names()));
  }
  return amounts;
}

}  // namespace

WhatIf::Impl::Impl(const Snapshot& s, const Reserved& reserved)
    : snapshot(s),
      views(views_of(s)),
      faces(faces_of(views)),
      index(s, faces),
      room(allocatable_of(views, index)),
      incoming(views.size()) {
  for (NodeId node = 0; node < views.size(); ++node) {
    room.set_tier(node, tier_of(*views[node], snapshot.now));
    for (const auto& pod : views[node]->pods) {
      if (pod->terminal()) continue;
      const ClassId c = index.class_of(*pod);
      index.add(c, node, pod->deletion_timestamp.has_value(), 1);
      room.take(node, index.get(c).need);
    }
  }
  const auto expect = [this](const api::Pod& pod, const NodeName& name) {
    const auto node = id_of(name);
    if (!node || pod.terminal()) return;
    const ClassId c = index.class_of(pod);
    index.add(c, *node, false, 1);
    room.take(*node, index.get(c).need);
    ++incoming[*node];
  };
  for (const auto& [name, pods] : reserved) {
    for (const auto& pod : pods) expect(*pod, name);
  }
  for (const auto& pod : snapshot.unbound) {
    if (pod->nominated_node_name.empty()) continue;
    expect(*pod, pod->nominated_node_name);
    if (const auto node = id_of(pod->nominated_node_name)) locations[pod->uid] = *node;
  }
  room.sort();
}

std::optional<NodeId> WhatIf::Impl::id_of(const NodeName& name) const {
  const auto at = std::lower_bound(
      views.begin(), views.end(), name,
      [](const NodeView* view, const NodeName& n) { return view->node->meta.name < n; });
  if (at == views.end() || (*at)->node->meta.name != name) return std::nullopt;
  return static_cast<NodeId>(at - views.begin());
}

std::optional<NodeId> WhatIf::Impl::location_of(const api::Pod& pod) const {
  if (const auto at = locations.find(pod.uid); at != locations.end()) {
    if (at->second == kNowhere) return std::nullopt;
    return static_cast<NodeId>(at->second);
  }
  return pod.node_name.empty() || pod.terminal() ? std::nullopt : id_of(pod.node_name);
}

bool WhatIf::Impl::passes(ClassId pod_class, NodeId node) {
  return filters::node_resources_fit::passes(index.get(pod_class).need, room.free(node)) &&
         index.static_passes(pod_class, node) && index.dynamic_passes(pod_class, node);
}

void WhatIf::Impl::locate(const std::string& uid, std::int64_t where) {
  Undo entry;
  entry.kind = Undo::Kind::located;
  entry.uid = uid;
  const auto [at, added] = locations.try_emplace(uid, where);
  if (!added) {
    entry.location = at->second;
    at->second = where;
  }
  log.push_back(std::move(entry));
}

void WhatIf::Impl::add(const api::Pod& pod, NodeId node) {
  const ClassId c = index.class_of(pod);
  index.add(c, node, false, 1);
  room.take(node, index.get(c).need);
  ++incoming[node];
  Undo entry;
  entry.kind = Undo::Kind::added;
  entry.node = node;
  entry.pod_class = c;
  log.push_back(std::move(entry));
  locate(pod.uid, node);
}

void WhatIf::Impl::take_off(const api::Pod& pod) {
  const auto node = location_of(pod);
  if (!node) return;
  const ClassId c = index.class_of(pod);
  Undo entry;
  entry.kind = Undo::Kind::taken;
  entry.node = *node;
  entry.pod_class = c;
  entry.incoming = locations.contains(pod.uid);
  // Placed pods were added as staying ones.
  entry.terminating = !entry.incoming && pod.deletion_timestamp.has_value();
  index.add(c, *node, entry.terminating, -1);
  room.give_back(*node, index.get(c).need);
  if (entry.incoming) --incoming[*node];
  if (room.tier(*node) != Tier::none) ++freed;
  log.push_back(std::move(entry));
  locate(pod.uid, kNowhere);
}

void WhatIf::Impl::set_tier(NodeId node, Tier tier) {
  if (room.tier(node) == tier) return;
  Undo entry;
  entry.kind = Undo::Kind::tier;
  entry.node = node;
  entry.tier = room.tier(node);
  if (tier != Tier::none) ++freed;
  room.set_tier(node, tier);
  log.push_back(std::move(entry));
}

void WhatIf::Impl::collect_daemons() {
  daemons.emplace();
  std::unordered_set<std::string> seen;
  for (const NodeView* view : views) {
    for (const auto& pod : view->pods) {
      if (!pod->daemon() || pod->terminal() || !seen.insert(pod->owner->uid).second) continue;
      daemons->push_back({pod->owner->uid, index.class_of(*pod)});
    }
  }
}

Amounts WhatIf::Impl::daemons_for(NodeId node) {
  if (!daemons) collect_daemons();
  Amounts sum;
  for (const Daemon& daemon : *daemons) {
    const PodClass& c = index.get(daemon.pod_class);
    const auto& pods = views[node]->pods;
    const bool there = std::any_of(pods.begin(), pods.end(), [&](const auto& pod) {
      return pod->daemon() && !pod->terminal() && pod->owner->uid == daemon.uid;
    });
    if (there || !filters::node_affinity::passes_ignoring_fields(*c.spec, *faces[node].node) ||
        !filters::taint_toleration::passes(*c.spec, faces[node])) {
      continue;
    }
    sum += c.need;
  }
  return sum;
}

void WhatIf::Impl::wake(NodeId node) {
  Undo entry;
  entry.kind = Undo::Kind::woken;
  entry.node = node;
  entry.face = std::move(faces[node]);
  faces[node] = filters::face_of(*views[node], true);
  index.face_changed(node);
  entry.amounts = daemons_for(node);
  room.take(node, entry.amounts);
  log.push_back(std::move(entry));
  set_tier(node, Tier::normal);
}

void WhatIf::Impl::undo(Undo& entry) {
  switch (entry.kind) {
    case Undo::Kind::added:
      index.add(entry.pod_class, entry.node, false, -1);
      room.give_back(entry.node, index.get(entry.pod_class).need);
      --incoming[entry.node];
      if (room.tier(entry.node) != Tier::none) ++freed;
      return;
    case Undo::Kind::taken:
      index.add(entry.pod_class, entry.node, entry.terminating, 1);
      room.take(entry.node, index.get(entry.pod_class).need);
      if (entry.incoming) ++incoming[entry.node];
      return;
    case Undo::Kind::tier:
      if (entry.tier != Tier::none) ++freed;
      room.set_tier(entry.node, entry.tier);
      return;
    case Undo::Kind::woken:
      room.give_back(entry.node, entry.amounts);
      faces[entry.node] = std::move(entry.face);
      index.face_changed(entry.node);
      return;
    case Undo::Kind::located:
      if (entry.location) {
        locations[entry.uid] = *entry.location;
      } else {
        locations.erase(entry.uid);
      }
      return;
  }
}

void WhatIf::Impl::rollback(std::size_t mark) {
  while (log.size() > mark) {
    undo(log.back());
    log.pop_back();
  }
}

WhatIf::WhatIf(const Snapshot& snapshot, const Reserved& reserved)
    : impl_(std::make_unique<Impl>(snapshot, reserved)) {}
WhatIf::~WhatIf() = default;

void WhatIf::exclude(const NodeName& node) {
  if (const auto id = impl_->id_of(node)) impl_->set_tier(*id, Tier::none);
}

void WhatIf::include(const NodeName& node) {
  if (const auto id = impl_->id_of(node)) {
    impl_->set_tier(*id, tier_of(*impl_->views[*id], impl_->snapshot.now));
  }
}

bool WhatIf::is_destination(const NodeName& node) const {
  const auto id = impl_->id_of(node);
  return id && impl_->room.tier(*id) != Tier::none;
}

void WhatIf::assume_awake(const NodeName& node) {
  const auto id = impl_->id_of(node);
  if (id && impl_->room.tier(*id) == Tier::none) impl_->wake(*id);
}

std::optional<Unfit> WhatIf::fits(const api::Pod& pod, const NodeName& node) const {
  const auto id = impl_->id_of(node);
  if (!id) return Unfit{"NodeName", fmt::format("there is no node {}", node)};
  if (impl_->room.tier(*id) == Tier::none) {
    return Unfit{"NodeAwake", why_no_destination(*impl_->views[*id], impl_->snapshot.now)};
  }
  const std::size_t before = mark();
  impl_->take_off(pod);
  const ClassId c = impl_->index.class_of(pod);
  std::optional<Unfit> unfit;
  if (!impl_->passes(c, *id)) {
    PodIndex::Refusal refusal = impl_->index.explain(c, *id, impl_->room.free(*id));
    unfit = Unfit{std::string{refusal.filter}, std::move(refusal.message)};
  }
  impl_->rollback(before);
  return unfit;
}

bool WhatIf::can_take(const api::Pod& pod, const NodeName& node) const {
  const auto id = impl_->id_of(node);
  if (!id || impl_->room.tier(*id) == Tier::none) return false;
  const std::size_t before = mark();
  impl_->take_off(pod);
  const bool fits = impl_->passes(impl_->index.class_of(pod), *id);
  impl_->rollback(before);
  return fits;
}

std::optional<NodeName> WhatIf::place(const std::shared_ptr<const api::Pod>& pod) {
  return place_among(pod, 1, nullptr);
}

std::optional<NodeName> WhatIf::place_among(const std::shared_ptr<const api::Pod>& pod,
                                            std::size_t most, const Choose& choose) {
  Impl& s = *impl_;
  const ClassId c = s.index.class_of(*pod);
  const auto from = s.location_of(*pod);
  const bool from_destination = from && s.room.tier(*from) != Tier::none;
  if (!from_destination && s.known_nowhere(c)) return std::nullopt;
  const std::size_t before = mark();
  s.take_off(*pod);
  std::vector<Fitting> fitting;
  Tier tier = Tier::none;  // of the first that fits
  for (const NodeId node : s.room.order()) {
    if (s.room.tier(node) == Tier::none) break;
    if (!fitting.empty() && s.room.tier(node) != tier) break;
    if (!s.passes(c, node)) continue;
    tier = s.room.tier(node);
    const Amounts& free = s.room.free(node);
    fitting.push_back({s.views[node], node, Millicores{free.cpu}, Bytes{free.memory}});
    if (fitting.size() >= most) break;
  }
  if (!fitting.empty()) {
    const auto node = static_cast<NodeId>(fitting[fitting.size() > 1 ? choose(fitting) : 0].id);
    s.add(*pod, node);
    return s.views[node]->name();
  }
  s.rollback(before);
  if (s.index.get(c).monotone) {
    if (s.nowhere_since.size() <= c) s.nowhere_since.resize(c + 1);
    s.nowhere_since[c] = s.freed;
  }
  return std::nullopt;
}

std::optional<Unfit> WhatIf::place_on(const std::shared_ptr<const api::Pod>& pod,
                                      const NodeName& node) {
  if (auto unfit = fits(*pod, node)) return unfit;
  impl_->take_off(*pod);
  impl_->add(*pod, *impl_->id_of(node));
  return std::nullopt;
}

bool WhatIf::put(const std::shared_ptr<const api::Pod>& pod, const NodeName& node) {
  const auto id = impl_->id_of(node);
  if (!id || impl_->room.tier(*id) == Tier::none) return false;
  const std::size_t before = mark();
  impl_->take_off(*pod);
  if (!impl_->passes(impl_->index.class_of(*pod), *id)) {
    impl_->rollback(before);
    return false;
  }
  impl_->add(*pod, *id);
  return true;
}

void WhatIf::remove(const api::Pod& pod) {
  impl_->take_off(pod);
}

Unfit WhatIf::why_nowhere(const api::Pod& pod) const {
  Impl& s = *impl_;
  const std::size_t before = mark();
  s.take_off(pod);
  const ClassId c = s.index.class_of(pod);
  struct Count {
    std::string_view filter;
    std::int64_t nodes = 0;
    NodeId first = 0;
  };
  std::vector<Count> counts;
  std::int64_t destinations = 0;
  for (const NodeId node : s.room.order()) {
    if (s.room.tier(node) == Tier::none) break;
    ++destinations;
    const std::string_view filter = s.index.refusing_filter(c, node, s.room.free(node));
    auto at = std::find_if(counts.begin(), counts.end(),
                           [&](const Count& count) { return count.filter == filter; });
    if (at == counts.end()) at = counts.insert(counts.end(), Count{filter, 0, node});
    ++at->nodes;
  }
  Unfit unfit{"NodeAwake", "no other node is awake"};
  if (!counts.empty()) {
    std::stable_sort(counts.begin(), counts.end(),
                     [](const Count& a, const Count& b) { return a.nodes > b.nodes; });
    std::string list;
    for (const Count& count : counts) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count.nodes, count.filter);
    }
    const PodIndex::Refusal example =
        s.index.explain(c, counts.front().first, s.room.free(counts.front().first));
    unfit.filter = std::string{example.filter};
    unfit.message = fmt::format("0 of {} awake nodes fit ({}); on {}: {}", destinations, list,
                                s.views[counts.front().first]->name(), example.message);
  }
  s.rollback(before);
  return unfit;
}

std::size_t WhatIf::mark() const {
  return impl_->log.size();
}

void WhatIf::rollback(std::size_t mark) {
  impl_->rollback(mark);
}

Millicores WhatIf::free_cpu(const NodeName& node) const {
  const auto id = impl_->id_of(node);
  return Millicores{id ? impl_->room.free(*id).cpu : 0};
}

Bytes WhatIf::free_memory(const NodeName& node) const {
  const auto id = impl_->id_of(node);
  return Bytes{id ? impl_->room.free(*id).memory : 0};
}

std::int64_t WhatIf::incoming(const NodeName& node) const {
  const auto id = impl_->id_of(node);
  return id ? impl_->incoming[*id] : 0;
}

}  // namespace kwatt::planner
