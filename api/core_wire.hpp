#pragma once
// The core kinds as they look on the wire, reduced to what kwatt uses. Decoded by their tables and
// then turned into the flat types of core.hpp. For the .cpp files of api/ only.
#include "api/core.hpp"
#include "api/describe_meta.hpp"
#include "api/quantity.hpp"

namespace kwatt::api::wire {

// A resource list, parsed entry by entry.
struct ResourceList {
  Resources value;
  static constexpr TypeInfo type_info() {
    TypeInfo info = describe::scalar(TypeKind::string_map);
    info.clear = [](void* v) { describe::as<ResourceList>(v) = {}; };
    info.insert = [](void* v, std::string_view key, std::string_view text) {
      return describe::as<ResourceList>(v).insert(key, text);
    };
    return info;
  }
  bool insert(std::string_view key, std::string_view text);
};

// True as soon as the member is there.
struct Presence {
  bool value = false;
  static constexpr TypeInfo type_info() { return describe::scalar(TypeKind::presence); }
};

// Annotations of pods: only those that veto or steer what kwatt does.
struct SteeringAnnotations {
  static constexpr TypeInfo type_info() {
    TypeInfo info = describe::string_map();
    info.insert = [](void* v, std::string_view key, std::string_view text) {
      if (steers(key)) describe::as<StringMap>(v).set(key, text);
      return true;
    };
    return info;
  }
  static bool steers(std::string_view key);
};

struct PodMetadata {
  std::string name, namespace_name, uid, resource_version;
  std::optional<TimePoint> creation_timestamp, deletion_timestamp;
  StringMap labels, annotations;
  std::vector<OwnerReference> owner_references;
};

struct ContainerResources {
  ResourceList requests, limits;
};
struct ContainerPort {
  std::int64_t host_port = 0;
  std::string protocol, host_ip;
};
struct Container {
  std::string restart_policy;  // "Always" on an init container: a sidecar
  ContainerResources resources;
  std::vector<ContainerPort> ports;
};

struct EmptyDir {
  std::string medium;
};
struct ClaimSource {
  std::string claim_name;
};
struct Volume {
  std::string name;
  std::optional<EmptyDir> empty_dir;
  Presence host_path, ephemeral;
  std::optional<ClaimSource> claim;
};

struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;
};
struct NodeAffinity {
  NodeSelector required;
};
struct AffinityTerm {
  std::optional<LabelSelector> label_selector;
  std::vector<std::string> namespaces;
  Presence namespace_selector;
  std::string topology_key;
  // Keys of the pod's own labels merged into the selector (1.29).
  std::vector<std::string> match_label_keys, mismatch_label_keys;
};
struct PodAffinity {
  std::vector<AffinityTerm> required;
};
struct Affinity {
  NodeAffinity node;
  PodAffinity pod, pod_anti;
};

struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::string topology_key, when_unsatisfiable;
  std::optional<LabelSelector> label_selector;
  std::optional<std::int64_t> min_domains;
  std::string node_affinity_policy, node_taints_policy;
  std::vector<std::string> match_label_keys;
};

struct PodSpec {
  std::string node_name, scheduler_name;
  StringMap node_selector;
  Affinity affinity;
  std::vector<SpreadConstraint> topology_spread;
  std::vector<Toleration> tolerations;
  std::vector<Container> containers, init_containers;
  ResourceList overhead;
  std::optional<ContainerResources> resources;  // of the whole pod (1.34)
  std::vector<Volume> volumes;
  std::vector<Presence> scheduling_gates;
  std::int64_t priority = 0;
};

struct PodCondition {
  std::string type, status, reason;
  std::optional<TimePoint> last_transition_time;
};
struct PodStatus {
  std::string phase, nominated_node_name;
  std::vector<PodCondition> conditions;
};

struct Pod {
  PodMetadata meta;
  PodSpec spec;
  PodStatus status;
};

struct PodTemplateObject {
  ObjectMeta meta;
  Pod pod;  // without a name or status
};

}  // namespace kwatt::api::wire

namespace kwatt::api {

#define KWATT_WIRE(Type, ...)                               \
  template <>                                               \
  struct Describe<Type> {                                   \
    static constexpr std::string_view name = #Type;         \
    static constexpr auto fields = std::array{__VA_ARGS__}; \
  }

KWATT_WIRE(Taint, field<&Taint::key>("key"), field<&Taint::value>("value"),
           field<&Taint::effect>("effect"), field<&Taint::time_added>("timeAdded"));
KWATT_WIRE(Toleration, field<&Toleration::key>("key"), field<&Toleration::op>("operator"),
           field<&Toleration::value>("value"), field<&Toleration::effect>("effect"),
           field<&Toleration::toleration_seconds>("tolerationSeconds"));
KWATT_WIRE(NodeSelectorTerm, field<&NodeSelectorTerm::match_expressions>("matchExpressions"),
           field<&NodeSelectorTerm::match_fields>("matchFields"));
KWATT_WIRE(wire::NodeSelector, field<&wire::NodeSelector::terms>("nodeSelectorTerms"));

}  // namespace kwatt::api
