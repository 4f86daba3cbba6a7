// The counters of PodIndex: pods that a term speaks of, by topology domain.
#include <algorithm>

#include "planner/pod_index.hpp"

namespace kwatt::planner {

std::size_t PodIndex::topology(const std::string& key) {
  const auto known = std::find_if(topologies_.begin(), topologies_.end(),
                                  [&](const Topology& t) { return t.key == key; });
  if (known != topologies_.end()) return static_cast<std::size_t>(known - topologies_.begin());
  Topology& t = topologies_.emplace_back();
  t.key = key;
  t.domain_of.reserve(faces_.size());
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (const filters::NodeFace& face : faces_) {
    const std::string* value = face.node->meta.labels.find(key);
    t.domain_of.push_back(
        value == nullptr
            ? -1
            : ids.emplace(*value, static_cast<std::int32_t>(ids.size())).first->second);
  }
  t.domains = ids.size();
  return topologies_.size() - 1;
}

// Does a pod of class `id` count in `counter`?
bool PodIndex::wants(const Counter& counter, ClassId id) const {
  namespace affinity = filters::inter_pod_affinity;
  const Class& owner = classes_[counter.owner];
  const Class& c = classes_[id];
  const api::PodTemplate& spec = *owner.shown.spec;
  switch (counter.kind) {
    case Counter::Kind::existing:
      return id == counter.owner;
    case Counter::Kind::spread:
      return c.namespace_id == owner.namespace_id &&
             api::matches(spec.topology_spread[counter.term].label_selector, c.shown.spec->labels);
    case Counter::Kind::anti_affinity:
      return affinity::term_matches(spec.required_pod_anti_affinity[counter.term],
                                    owner.shown.namespace_name, c.shown.namespace_name,
                                    c.shown.spec->labels);
    case Counter::Kind::affinity:
      return affinity::all_terms_match(spec.required_pod_affinity, owner.shown.namespace_name,
                                       c.shown.namespace_name, c.shown.spec->labels);
  }
  return false;
}

std::uint32_t PodIndex::build_counter(Counter::Kind kind, ClassId owner, std::size_t term,
                                      const std::string& topology_key) {
  const auto index = static_cast<std::uint32_t>(counters_.size());
  const std::size_t t = topology(topology_key);
  Counter& counter = counters_.emplace_back();
  counter.kind = kind;
  counter.owner = owner;
  counter.term = term;
  counter.topology = t;
  for (ClassId id = 0; id < classes_.size(); ++id) {
    if (wants(counter, id)) classes_[id].feeds.push_back(index);
  }
  recount(counter);
  return index;
}

void PodIndex::recount(Counter& counter) {
  counter.count.assign(topologies_[counter.topology].domains, 0);
  counter.total = 0;
  counter.stale = false;
  const bool spread = counter.kind == Counter::Kind::spread;
  if (spread) count_nodes(counter);
  std::vector<std::uint8_t> wanted(classes_.size());  // 0 not asked yet, 1 yes, 2 no
  for (NodeId node = 0; node < on_node_.size(); ++node) {
    for (const OnNode& o : on_node_[node]) {
      const std::int32_t count = spread ? o.count - o.terminating : o.count;
      if (count == 0) continue;
      if (wanted[o.id] == 0) wanted[o.id] = wants(counter, o.id) ? 1 : 2;
      if (wanted[o.id] == 1) bump(counter, node, count);
    }
  }
}

void PodIndex::count_nodes(Counter& counter) {
  const api::PodTemplate& spec = *classes_[counter.owner].shown.spec;
  const Topology& t = topologies_[counter.topology];
  counter.counts_node.assign(faces_.size(), 0);
  counter.counts_domain.assign(t.domains, 0);
  counter.domains = 0;
  counter.minimum_known = false;
  for (NodeId node = 0; node < faces_.size(); ++node) {
    if (!filters::pod_topology_spread::counts_node(spec, spec.topology_spread[counter.term],
                                                   faces_[node])) {
      continue;
    }
    counter.counts_node[node] = 1;
    std::uint8_t& domain = counter.counts_domain[static_cast<std::size_t>(t.domain_of[node])];
    if (domain == 0) ++counter.domains;
    domain = 1;
  }
}

void PodIndex::bump(Counter& counter, NodeId node, std::int64_t by) {
  const std::int32_t domain = topologies_[counter.topology].domain_of[node];
  if (domain < 0) return;
  if (counter.kind == Counter::Kind::spread && counter.counts_node[node] == 0) return;
  std::int32_t& count = counter.count[static_cast<std::size_t>(domain)];
  if (by > 0 && count == counter.minimum) counter.minimum_known = false;
  count += static_cast<std::int32_t>(by);
  counter.total += by;
  if (count < counter.minimum) counter.minimum = count;
}

void PodIndex::refresh(Counter& counter) {
  if (counter.stale) recount(counter);
}

std::int64_t PodIndex::minimum_of(Counter& counter) {
  if (!counter.minimum_known) {
    bool first = true;
    counter.minimum = 0;
    for (std::size_t d = 0; d < counter.count.size(); ++d) {
      if (counter.counts_domain[d] == 0) continue;
      if (first || counter.count[d] < counter.minimum) counter.minimum = counter.count[d];
      first = false;
    }
    counter.minimum_known = true;
  }
  return counter.minimum;
}

std::int64_t PodIndex::count_at(const Counter& counter, NodeId node) const {
  const std::int32_t domain = topologies_[counter.topology].domain_of[node];
  return domain < 0 ? 0 : counter.count[static_cast<std::size_t>(domain)];
}

void PodIndex::build_counters(ClassId id) {
  if (classes_[id].counters_built) return;
  classes_[id].counters_built = true;
  const std::shared_ptr<const api::PodTemplate> spec = classes_[id].shown.spec;
  const std::string namespace_name = classes_[id].shown.namespace_name;
  for (std::size_t t = 0; t < spec->topology_spread.size(); ++t) {
    const api::TopologySpreadConstraint& constraint = spec->topology_spread[t];
    if (!constraint.do_not_schedule) continue;
    const std::uint32_t counter =
        build_counter(Counter::Kind::spread, id, t, constraint.topology_key);
    classes_[id].spread_counters.push_back(counter);
    classes_[id].spread_self.push_back(api::matches(constraint.label_selector, spec->labels));
  }
  for (std::size_t t = 0; t < spec->required_pod_anti_affinity.size(); ++t) {
    classes_[id].anti_counters.push_back(build_counter(
        Counter::Kind::anti_affinity, id, t, spec->required_pod_anti_affinity[t].topology_key));
  }
  for (std::size_t t = 0; t < spec->required_pod_affinity.size(); ++t) {
    classes_[id].affinity_counters.push_back(
        build_counter(Counter::Kind::affinity, id, t, spec->required_pod_affinity[t].topology_key));
  }
  classes_[id].affinity_self = filters::inter_pod_affinity::all_terms_match(
      spec->required_pod_affinity, namespace_name, namespace_name, spec->labels);
}

const std::vector<std::uint32_t>& PodIndex::existing_for(ClassId id) {
  Class& c = classes_[id];
  for (; c.existing_seen < existing_.size(); ++c.existing_seen) {
    ExistingTerm& existing = existing_[c.existing_seen];
    const Class& owner = classes_[existing.owner];
    const api::PodAffinityTerm& term = owner.shown.spec->required_pod_anti_affinity[existing.term];
    // Most terms speak of their own namespace only: decided without comparing strings.
    if (!term.any_namespace && term.namespaces.empty() && owner.namespace_id != c.namespace_id) {
      continue;
    }
    if (!filters::inter_pod_affinity::term_matches(term, owner.shown.namespace_name,
                                                   c.shown.namespace_name, c.shown.spec->labels)) {
      continue;
    }
    if (existing.counter < 0) {
      existing.counter =
          build_counter(Counter::Kind::existing, existing.owner, existing.term, term.topology_key);
    }
    c.existing_counters.push_back(static_cast<std::uint32_t>(existing.counter));
  }
  return c.existing_counters;
}

}  // namespace kwatt::planner
