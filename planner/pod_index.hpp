#pragma once
// Which kinds of pods are where, and how many per topology domain: what makes the filters of the
// what-if cheap at 30,000 pods. Pods of one template and namespace form a class: they share the
// answers of the static filters, and are counted together. Counters per topology domain exist only
// for the terms somebody asked about, and follow every add().
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/filters/filters.hpp"

namespace kwatt::planner {

using NodeId = std::uint32_t;   // position in Snapshot::nodes, so ids sort as names do
using ClassId = std::uint32_t;  // position in PodIndex

struct PodClass {
  std::shared_ptr<const api::PodTemplate> spec;
  std::string namespace_name;
  filters::Amounts need;
  // True unless a placement elsewhere can make room: affinity and spread. Then "fits nowhere" stays
  // true until something is taken away.
  bool monotone = true;
};

// Not thread-safe: answers are cached. `snapshot` and `faces` must outlive it.
class PodIndex {
 public:
  PodIndex(const Snapshot& snapshot, const std::vector<filters::NodeFace>& faces);

  ClassId class_of(const api::Pod& pod);
  const PodClass& get(ClassId id) const { return classes_[id].shown; }
  filters::ResourceNames& resource_names() { return resource_names_; }

  // One more (delta 1) or one less (-1) pod of the class on the node.
  void add(ClassId id, NodeId node, bool terminating, int delta);
  // The node's taints or cordon look different now.
  void face_changed(NodeId node);

  // Gates, cordon, taints, node affinity and volumes: what depends on pod and node alone.
  bool static_passes(ClassId id, NodeId node);
  // Host ports, topology spread, and affinity between pods: what depends on the pods there.
  bool dynamic_passes(ClassId id, NodeId node);
  // The first filter, in kube-scheduler's order, that refuses. `free` is the room on the node.
  struct Refusal {
    std::string_view filter;
    std::string message;
  };
  Refusal explain(ClassId id, NodeId node, const filters::Amounts& free);
  // Its name alone, cheaply; "" if none refuses.
  std::string_view refusing_filter(ClassId id, NodeId node, const filters::Amounts& free);

 private:
  struct Topology {
    std::string key;
    std::vector<std::int32_t> domain_of;  // by node; -1: no such label
    std::size_t domains = 0;
  };
  // Counts pods that a term of `owner` speaks of, by domain of its topology key.
  struct Counter {
    enum class Kind { spread, anti_affinity, affinity, existing } kind = Kind::spread;
    ClassId owner = 0;
    std::size_t term = 0;
    std::size_t topology = 0;
    std::vector<std::int32_t> count;
    std::int64_t total = 0;
    // Spread only: which nodes and thus domains take part, and the least of their counts.
    std::vector<std::uint8_t> counts_node, counts_domain;
    std::int64_t domains = 0;
    std::int64_t minimum = 0;
    bool minimum_known = false;
    bool stale = false;  // count again before use
  };
  struct Class {
    PodClass shown;
    std::uint32_t namespace_id = 0;
    bool spread = false, ports = false, affinity = false, anti_affinity = false;
    std::vector<std::uint8_t> static_result;  // by node: 0 not asked yet, 1 passes, 2 refuses
    std::vector<std::uint32_t> feeds;         // counters this class's pods count in
    bool counters_built = false;
    bool affinity_self = false;
    std::vector<std::uint32_t> spread_counters, anti_counters, affinity_counters;
    std::vector<std::uint8_t> spread_self;
    std::vector<std::uint32_t> existing_counters;  // others' anti-affinity that speaks of us
    std::size_t existing_seen = 0;                 // how many of existing_ that list covers
  };
  struct OnNode {
    ClassId id = 0;
    std::int32_t count = 0, terminating = 0;
  };
  struct ExistingTerm {
    ClassId owner = 0;
    std::size_t term = 0;
    std::int64_t counter = -1;  // built when a pod asks
  };
  struct ClassKey {
    const api::PodTemplate* spec = nullptr;
    std::uint32_t namespace_id = 0;
    bool operator==(const ClassKey&) const = default;
  };
  struct ClassKeyHash {
    std::size_t operator()(const ClassKey& key) const {
      return std::hash<const void*>{}(key.spec) * 31 + key.namespace_id;
    }
  };

  std::uint32_t namespace_id(const std::string& name);
  std::size_t topology(const std::string& key);
  void build_counters(ClassId id);
  std::uint32_t build_counter(Counter::Kind kind, ClassId owner, std::size_t term,
                              const std::string& topology_key);
  void recount(Counter& counter);
  void count_nodes(Counter& counter);
  bool wants(const Counter& counter, ClassId id) const;
  void bump(Counter& counter, NodeId node, std::int64_t by);
  void refresh(Counter& counter);
  std::int64_t minimum_of(Counter& counter);
  const std::vector<std::uint32_t>& existing_for(ClassId id);
  std::int64_t count_at(const Counter& counter, NodeId node) const;

  bool ports_pass(const Class& c, NodeId node) const;
  bool spread_passes(ClassId id, NodeId node);
  bool affinity_passes(ClassId id, NodeId node);
  std::string explain_spread(ClassId id, NodeId node);
  std::string explain_affinity(ClassId id, NodeId node);

  const Snapshot& snapshot_;
  const std::vector<filters::NodeFace>& faces_;
  filters::ResourceNames resource_names_;
  std::deque<Class> classes_;
  std::unordered_map<ClassKey, ClassId, ClassKeyHash> class_ids_;
  std::unordered_map<std::string, std::uint32_t> namespace_ids_;
  std::string last_namespace_;
  std::uint32_t last_namespace_id_ = 0;
  std::vector<std::vector<OnNode>> on_node_;
  std::deque<Topology> topologies_;
  std::deque<Counter> counters_;
  std::vector<ExistingTerm> existing_;
};

}  // namespace kwatt::planner
