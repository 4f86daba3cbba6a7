#include "planner/pod_index.hpp"

#include <algorithm>

namespace kwatt::planner {
namespace {

using filters::NodeFace;

constexpr std::uint8_t kPasses = 1, kRefuses = 2;

}  // namespace

PodIndex::PodIndex(const Snapshot& snapshot, const std::vector<NodeFace>& faces)
    : snapshot_(snapshot), faces_(faces), on_node_(faces.size()) {}

std::uint32_t PodIndex::namespace_id(const std::string& name) {
  // Pods come sorted by namespace, so the last answer is usually the next.
  if (!namespace_ids_.empty() && name == last_namespace_) return last_namespace_id_;
  const auto [at, added] =
      namespace_ids_.emplace(name, static_cast<std::uint32_t>(namespace_ids_.size()));
  last_namespace_ = name;
  last_namespace_id_ = at->second;
  return at->second;
}

ClassId PodIndex::class_of(const api::Pod& pod) {
  const ClassKey key{pod.spec.get(), namespace_id(pod.namespace_name)};
  if (const auto at = class_ids_.find(key); at != class_ids_.end()) return at->second;
  const auto id = static_cast<ClassId>(classes_.size());
  class_ids_.emplace(key, id);
  Class& c = classes_.emplace_back();
  const api::PodTemplate& spec = *pod.spec;
  c.shown.spec = pod.spec;
  c.shown.namespace_name = pod.namespace_name;
  c.shown.need = filters::amounts_of(spec.requests, resource_names_);
  c.shown.need.pods = 1;
  c.namespace_id = key.namespace_id;
  c.spread = std::any_of(spec.topology_spread.begin(), spec.topology_spread.end(),
                         [](const auto& s) { return s.do_not_schedule; });
  c.ports = !spec.host_ports.empty();
  c.affinity = !spec.required_pod_affinity.empty();
  c.anti_affinity = !spec.required_pod_anti_affinity.empty();
  c.shown.monotone = !c.spread && !c.affinity;
  for (std::uint32_t i = 0; i < counters_.size(); ++i) {
    if (wants(counters_[i], id)) c.feeds.push_back(i);
  }
  for (std::size_t t = 0; t < spec.required_pod_anti_affinity.size(); ++t) {
    existing_.push_back({id, t, -1});
  }
  return id;
}

void PodIndex::add(ClassId id, NodeId node, bool terminating, int delta) {
  std::vector<OnNode>& here = on_node_[node];
  auto at = std::find_if(here.begin(), here.end(), [&](const OnNode& o) { return o.id == id; });
  if (at == here.end()) at = here.insert(here.end(), OnNode{id, 0, 0});
  at->count += delta;
  if (terminating) at->terminating += delta;
  for (const std::uint32_t i : classes_[id].feeds) {
    Counter& counter = counters_[i];
    // kube-scheduler spreads over pods that stay; affinity counts the terminating ones too.
    if (terminating && counter.kind == Counter::Kind::spread) continue;
    bump(counter, node, delta);
  }
}

void PodIndex::face_changed(NodeId node) {
  for (Class& c : classes_) {
    if (!c.static_result.empty()) c.static_result[node] = 0;
  }
  for (Counter& counter : counters_) {
    if (counter.kind != Counter::Kind::spread) continue;
    const auto& spread = classes_[counter.owner].shown.spec->topology_spread[counter.term];
    if (spread.node_taints_policy == "Honor") counter.stale = true;
  }
}

bool PodIndex::static_passes(ClassId id, NodeId node) {
  Class& c = classes_[id];
  if (c.static_result.empty()) c.static_result.resize(faces_.size());
  std::uint8_t& result = c.static_result[node];
  if (result == 0) {
    const NodeFace& face = faces_[node];
    const api::PodTemplate& spec = *c.shown.spec;
    const bool passes =
        filters::scheduling_gates::passes(spec) &&
        filters::node_unschedulable::passes(spec, face) &&
        filters::taint_toleration::passes(spec, face) &&
        filters::node_affinity::passes(spec, *face.node) &&
        filters::volume_binding::passes(c.shown.namespace_name, spec, *face.node, snapshot_);
    result = passes ? kPasses : kRefuses;
  }
  return result == kPasses;
}

bool PodIndex::dynamic_passes(ClassId id, NodeId node) {
  const Class& c = classes_[id];
  return (!c.ports || ports_pass(c, node)) && (!c.spread || spread_passes(id, node)) &&
         affinity_passes(id, node);
}

bool PodIndex::ports_pass(const Class& c, NodeId node) const {
  return std::none_of(on_node_[node].begin(), on_node_[node].end(), [&](const OnNode& o) {
    const Class& other = classes_[o.id];
    return o.count > 0 && other.ports &&
           filters::node_ports::conflict(c.shown.spec->host_ports, other.shown.spec->host_ports);
  });
}

bool PodIndex::spread_passes(ClassId id, NodeId node) {
  build_counters(id);
  const Class& c = classes_[id];
  for (std::size_t i = 0; i < c.spread_counters.size(); ++i) {
    Counter& counter = counters_[c.spread_counters[i]];
    refresh(counter);
    if (topologies_[counter.topology].domain_of[node] < 0) return false;
    if (!filters::pod_topology_spread::passes(c.shown.spec->topology_spread[counter.term],
                                              c.spread_self[i] != 0, count_at(counter, node),
                                              minimum_of(counter), counter.domains)) {
      return false;
    }
  }
  return true;
}

bool PodIndex::affinity_passes(ClassId id, NodeId node) {
  if (!existing_.empty()) {
    for (const std::uint32_t i : existing_for(id)) {
      if (count_at(counters_[i], node) > 0) return false;
    }
  }
  if (!classes_[id].affinity && !classes_[id].anti_affinity) return true;
  build_counters(id);
  const Class& c = classes_[id];
  for (const std::uint32_t i : c.anti_counters) {
    if (count_at(counters_[i], node) > 0) return false;
  }
  bool all_there = true;
  std::int64_t anywhere = 0;
  for (const std::uint32_t i : c.affinity_counters) {
    const Counter& counter = counters_[i];
    if (topologies_[counter.topology].domain_of[node] < 0) return false;
    all_there = all_there && count_at(counter, node) > 0;
    anywhere += counter.total;
  }
  // The first pod of a group that wants to be together may start anywhere.
  return all_there || (anywhere == 0 && c.affinity_self);
}

std::string_view PodIndex::refusing_filter(ClassId id, NodeId node, const filters::Amounts& free) {
  namespace f = filters;
  const PodClass& c = classes_[id].shown;
  const api::PodTemplate& spec = *c.spec;
  const NodeFace& face = faces_[node];
  if (!static_passes(id, node)) {
    if (!f::scheduling_gates::passes(spec)) return f::scheduling_gates::kName;
    if (!f::node_unschedulable::passes(spec, face)) return f::node_unschedulable::kName;
    if (!f::taint_toleration::passes(spec, face)) return f::taint_toleration::kName;
    if (!f::node_affinity::passes(spec, *face.node)) return f::node_affinity::kName;
  }
  if (classes_[id].ports && !ports_pass(classes_[id], node)) return f::node_ports::kName;
  if (!f::node_resources_fit::passes(c.need, free)) return f::node_resources_fit::kName;
  if (!static_passes(id, node)) return f::volume_binding::kName;
  if (classes_[id].spread && !spread_passes(id, node)) return f::pod_topology_spread::kName;
  if (!affinity_passes(id, node)) return f::inter_pod_affinity::kName;
  return {};
}

PodIndex::Refusal PodIndex::explain(ClassId id, NodeId node, const filters::Amounts& free) {
  namespace f = filters;
  const std::string_view filter = refusing_filter(id, node, free);
  const PodClass& c = classes_[id].shown;
  const api::PodTemplate& spec = *c.spec;
  const NodeFace& face = faces_[node];
  const auto sentence = [&]() -> std::string {
    if (filter == f::scheduling_gates::kName) return f::scheduling_gates::explain();
    if (filter == f::node_unschedulable::kName) return f::node_unschedulable::explain(face);
    if (filter == f::taint_toleration::kName) return f::taint_toleration::explain(spec, face);
    if (filter == f::node_affinity::kName) return f::node_affinity::explain(spec, *face.node);
    if (filter == f::node_ports::kName) return f::node_ports::explain(spec.host_ports);
    if (filter == f::node_resources_fit::kName) {
      return f::node_resources_fit::explain(c.need, free, resource_names_);
    }
    if (filter == f::volume_binding::kName) {
      return f::volume_binding::explain(c.namespace_name, spec, *face.node, snapshot_);
    }
    if (filter == f::pod_topology_spread::kName) return explain_spread(id, node);
    return explain_affinity(id, node);
  };
  return {filter, sentence()};
}

std::string PodIndex::explain_spread(ClassId id, NodeId node) {
  const Class& c = classes_[id];
  for (std::size_t i = 0; i < c.spread_counters.size(); ++i) {
    Counter& counter = counters_[c.spread_counters[i]];
    const auto& constraint = c.shown.spec->topology_spread[counter.term];
    if (topologies_[counter.topology].domain_of[node] < 0) {
      return filters::pod_topology_spread::explain_missing_key(constraint);
    }
    const std::int64_t here = count_at(counter, node), least = minimum_of(counter);
    if (!filters::pod_topology_spread::passes(constraint, c.spread_self[i] != 0, here, least,
                                              counter.domains)) {
      const bool few = constraint.min_domains && counter.domains < *constraint.min_domains;
      return filters::pod_topology_spread::explain_skew(constraint, here, few ? 0 : least);
    }
  }
  return {};
}

std::string PodIndex::explain_affinity(ClassId id, NodeId node) {
  namespace affinity = filters::inter_pod_affinity;
  for (const std::uint32_t i : existing_for(id)) {
    const Counter& counter = counters_[i];
    if (count_at(counter, node) > 0) {
      return affinity::explain_existing(
          classes_[counter.owner].shown.spec->required_pod_anti_affinity[counter.term]);
    }
  }
  build_counters(id);
  const Class& c = classes_[id];
  for (const std::uint32_t i : c.anti_counters) {
    if (count_at(counters_[i], node) > 0) {
      return affinity::explain_anti_affinity(
          c.shown.spec->required_pod_anti_affinity[counters_[i].term]);
    }
  }
  for (const std::uint32_t i : c.affinity_counters) {
    if (count_at(counters_[i], node) <= 0) {
      return affinity::explain_affinity(c.shown.spec->required_pod_affinity[counters_[i].term]);
    }
  }
  return {};
}

}  // namespace kwatt::planner
