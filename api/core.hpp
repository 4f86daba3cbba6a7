#pragma once
// The core kinds kwatt reads, reduced to the fields it uses. A decoder skips everything else, so a
// Pod costs the store what these fields cost.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/units.hpp"

namespace kwatt::api {

// Amounts of what a node offers or a pod requests. `extended`: whole units by resource name.
struct Resources {
  Millicores cpu;
  Bytes memory;
  Bytes ephemeral_storage;
  std::int64_t pods = 0;
  std::map<std::string, std::int64_t> extended;
  bool operator==(const Resources&) const = default;
  auto operator<=>(const Resources&) const = default;
};

struct Taint {
  std::string key, value, effect;  // effect: NoSchedule PreferNoSchedule NoExecute
  std::optional<TimePoint> time_added;
  bool operator==(const Taint&) const = default;
};

struct Toleration {
  std::string key, op, value, effect;  // op: "" is Equal; Exists with an empty key tolerates all
  std::optional<std::int64_t> toleration_seconds;
  bool operator==(const Toleration&) const = default;
};

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

struct Node {
  ObjectMeta meta;  // all labels and annotations
  bool unschedulable = false;
  std::vector<Taint> taints;
  std::string provider_id;
  Resources allocatable;
  std::vector<Condition> conditions;  // Ready and kwatt's Suspended, with their times
  std::string internal_ip;
};

struct NodeSelectorTerm {
  std::vector<SelectorRequirement> match_expressions;  // on labels
  std::vector<SelectorRequirement> match_fields;       // only metadata.name
  bool operator==(const NodeSelectorTerm&) const = default;
};

struct PodAffinityTerm {
  LabelSelector label_selector;
  bool has_label_selector = false;      // a term without one matches no pod
  std::vector<std::string> namespaces;  // empty: the pod's own
  bool any_namespace = false;  // namespaceSelector {} (others are treated as any: stricter)
  std::string topology_key;
  bool operator==(const PodAffinityTerm&) const = default;
};

struct TopologySpreadConstraint {
  std::int64_t max_skew = 1;
  std::string topology_key;
  bool do_not_schedule = true;  // ScheduleAnyway constraints are dropped by the decoder
  LabelSelector label_selector;
  std::optional<std::int64_t> min_domains;
  std::string node_affinity_policy = "Honor", node_taints_policy = "Ignore";
  bool operator==(const TopologySpreadConstraint&) const = default;
};

struct HostPort {
  std::int64_t port = 0;
  std::string protocol = "TCP", host_ip;
  bool operator==(const HostPort&) const = default;
};

// The part of a pod that all replicas of one owner have in common. Interned: thousands of pods
// share one object.
struct PodTemplate {
  StringMap labels;
  Resources requests;  // init containers, sidecars and overhead counted as kube-scheduler does
  Resources limits;
  StringMap node_selector;
  std::vector<NodeSelectorTerm> required_node_affinity;  // ORed terms; empty: none
  std::vector<PodAffinityTerm> required_pod_affinity;
  std::vector<PodAffinityTerm> required_pod_anti_affinity;
  std::vector<TopologySpreadConstraint> topology_spread;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  std::vector<std::string> claims;  // PersistentVolumeClaims by name
  bool local_storage = false;       // emptyDir (but memory-backed) or hostPath volumes
  bool scheduling_gated = false;
  std::int64_t priority = 0;
  std::string scheduler_name;
  bool operator==(const PodTemplate&) const = default;
};

enum class PodPhase : std::uint8_t { pending, running, succeeded, failed, unknown };
enum class PodScheduled : std::uint8_t { unknown, yes, unschedulable, gated, no_other };

struct Pod {
  std::string namespace_name, name, uid, resource_version;
  std::shared_ptr<const PodTemplate> spec;      // never null after decoding
  std::shared_ptr<const OwnerReference> owner;  // the controlling owner; null: a bare pod
  std::string node_name;                        // "": not bound
  std::string nominated_node_name;
  PodPhase phase = PodPhase::pending;
  PodScheduled scheduled = PodScheduled::unknown;
  bool ready = false;
  bool mirror = false;  // static pod (annotation kubernetes.io/config.mirror)
  std::optional<TimePoint> creation_timestamp, deletion_timestamp;
  std::optional<TimePoint> scheduled_transition;  // since when `scheduled` is as it is
  StringMap annotations;                          // only those that veto or steer (see decoder)

  bool terminal() const { return phase == PodPhase::succeeded || phase == PodPhase::failed; }
  bool daemon() const { return owner != nullptr && owner->kind == "DaemonSet"; }
  // What keeps a machine in use: not terminal, not of a DaemonSet, not static.
  bool workload() const { return !terminal() && !daemon() && !mirror; }
  std::string key() const { return namespace_name + "/" + name; }
};

struct PodDisruptionBudget {
  ObjectMeta meta;
  LabelSelector selector;
  bool has_selector = false;
  std::int64_t disruptions_allowed = 0;  // status
  std::int64_t desired_healthy = 0, current_healthy = 0, expected_pods = 0;
};

struct PersistentVolumeClaim {
  ObjectMeta meta;
  std::string volume_name;  // "": not bound yet
};

struct PersistentVolume {
  ObjectMeta meta;
  std::vector<NodeSelectorTerm> required_node_affinity;
};

struct VolumeAttachment {
  ObjectMeta meta;
  std::string node_name;
};

struct Lease {
  ObjectMeta meta;
  std::string holder_identity;
  std::int64_t lease_duration_seconds = 0;
  std::int64_t lease_transitions = 0;
  std::string acquire_time, renew_time;  // MicroTime text: compared for change, never for order
};

// ReplicaSet, StatefulSet, Deployment, ReplicationController: how many replicas an owner wants.
struct Workload {
  ObjectMeta meta;
  std::string kind;
  std::int64_t replicas = 0;
};

// ---- kinds of others, watched only where the API server has them

// core/v1 PodTemplate: the shape of a pod that does not run.
struct PodTemplateObject {
  ObjectMeta meta;
  std::shared_ptr<const PodTemplate> spec;  // never null after decoding
};

// autoscaling.x-k8s.io/v1alpha1: room that somebody wants to be kept free, in pods of one shape.
struct CapacityBuffer {
  ObjectMeta meta;
  std::string strategy;       // "" or buffer.x-k8s.io/active-capacity; others are a cloud's own
  std::string template_name;  // PodTemplate in its namespace: status's, else spec's; "": none known
  std::optional<std::int64_t> replicas;  // status's, else spec's
  std::optional<Resources> limits;       // all its pods together request no more than this
};

// remediation.medik8s.io/v1alpha1: nodes that are fenced when they stay unready.
struct NodeHealthCheck {
  ObjectMeta meta;
  LabelSelector selector;
};

}  // namespace kwatt::api
