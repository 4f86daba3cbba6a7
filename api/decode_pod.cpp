#include <algorithm>

#include "api/core_wire.hpp"
#include "api/decode.hpp"

namespace kwatt::api {

using wire::AffinityTerm;
using wire::Container;
using wire::ResourceList;

KWATT_WIRE(wire::PodMetadata, field<&wire::PodMetadata::name>("name"),
           field<&wire::PodMetadata::namespace_name>("namespace"),
           field<&wire::PodMetadata::uid>("uid"),
           field<&wire::PodMetadata::resource_version>("resourceVersion"),
           field<&wire::PodMetadata::creation_timestamp>("creationTimestamp"),
           field<&wire::PodMetadata::deletion_timestamp>("deletionTimestamp"),
           field<&wire::PodMetadata::labels>("labels"),
           field<&wire::PodMetadata::annotations, wire::SteeringAnnotations>("annotations"),
           field<&wire::PodMetadata::owner_references>("ownerReferences"));
KWATT_WIRE(wire::ContainerResources, field<&wire::ContainerResources::requests>("requests"),
           field<&wire::ContainerResources::limits>("limits"));
KWATT_WIRE(wire::ContainerPort, field<&wire::ContainerPort::host_port>("hostPort"),
           field<&wire::ContainerPort::protocol>("protocol"),
           field<&wire::ContainerPort::host_ip>("hostIP"));
KWATT_WIRE(wire::Container, field<&Container::restart_policy>("restartPolicy"),
           field<&Container::resources>("resources"), field<&Container::ports>("ports"));
KWATT_WIRE(wire::EmptyDir, field<&wire::EmptyDir::medium>("medium"));
KWATT_WIRE(wire::ClaimSource, field<&wire::ClaimSource::claim_name>("claimName"));
KWATT_WIRE(wire::Volume, field<&wire::Volume::name>("name"),
           field<&wire::Volume::empty_dir>("emptyDir"), field<&wire::Volume::host_path>("hostPath"),
           field<&wire::Volume::ephemeral>("ephemeral"),
           field<&wire::Volume::claim>("persistentVolumeClaim"));
KWATT_WIRE(wire::NodeAffinity,
           field<&wire::NodeAffinity::required>("requiredDuringSchedulingIgnoredDuringExecution"));
KWATT_WIRE(wire::AffinityTerm, field<&AffinityTerm::label_selector>("labelSelector"),
           field<&AffinityTerm::namespaces>("namespaces"),
           field<&AffinityTerm::namespace_selector>("namespaceSelector"),
           field<&AffinityTerm::topology_key>("topologyKey"),
           field<&AffinityTerm::match_label_keys>("matchLabelKeys"),
           field<&AffinityTerm::mismatch_label_keys>("mismatchLabelKeys"));
KWATT_WIRE(wire::PodAffinity,
           field<&wire::PodAffinity::required>("requiredDuringSchedulingIgnoredDuringExecution"));
KWATT_WIRE(wire::Affinity, field<&wire::Affinity::node>("nodeAffinity"),
           field<&wire::Affinity::pod>("podAffinity"),
           field<&wire::Affinity::pod_anti>("podAntiAffinity"));
KWATT_WIRE(wire::SpreadConstraint, field<&wire::SpreadConstraint::max_skew>("maxSkew"),
           field<&wire::SpreadConstraint::topology_key>("topologyKey"),
           field<&wire::SpreadConstraint::when_unsatisfiable>("whenUnsatisfiable"),
           field<&wire::SpreadConstraint::label_selector>("labelSelector"),
           field<&wire::SpreadConstraint::min_domains>("minDomains"),
           field<&wire::SpreadConstraint::node_affinity_policy>("nodeAffinityPolicy"),
           field<&wire::SpreadConstraint::node_taints_policy>("nodeTaintsPolicy"),
           field<&wire::SpreadConstraint::match_label_keys>("matchLabelKeys"));
KWATT_WIRE(wire::PodSpec, field<&wire::PodSpec::node_name>("nodeName"),
           field<&wire::PodSpec::scheduler_name>("schedulerName"),
           field<&wire::PodSpec::node_selector>("nodeSelector"),
           field<&wire::PodSpec::affinity>("affinity"),
           field<&wire::PodSpec::topology_spread>("topologySpreadConstraints"),
           field<&wire::PodSpec::tolerations>("tolerations"),
           field<&wire::PodSpec::containers>("containers"),
           field<&wire::PodSpec::init_containers>("initContainers"),
           field<&wire::PodSpec::overhead>("overhead"),
           field<&wire::PodSpec::resources>("resources"), field<&wire::PodSpec::volumes>("volumes"),
           field<&wire::PodSpec::scheduling_gates>("schedulingGates"),
           field<&wire::PodSpec::priority>("priority"));
KWATT_WIRE(wire::PodCondition, field<&wire::PodCondition::type>("type"),
           field<&wire::PodCondition::status>("status"),
           field<&wire::PodCondition::reason>("reason"),
           field<&wire::PodCondition::last_transition_time>("lastTransitionTime"));
KWATT_WIRE(wire::PodStatus, field<&wire::PodStatus::phase>("phase"),
           field<&wire::PodStatus::nominated_node_name>("nominatedNodeName"),
           field<&wire::PodStatus::conditions>("conditions"));
KWATT_WIRE(wire::Pod, field<&wire::Pod::meta>("metadata"), field<&wire::Pod::spec>("spec"),
           field<&wire::Pod::status>("status"));
KWATT_WIRE(wire::PodTemplateObject, field<&wire::PodTemplateObject::meta>("metadata"),
           field<&wire::PodTemplateObject::pod>("template"));

namespace {

template <class Combine>
void combine(Resources& into, const Resources& other, Combine operation) {
  const auto apply = [&](auto& a, const auto& b) { a = operation(a, b); };
  apply(into.cpu, other.cpu);
  apply(into.memory, other.memory);
  apply(into.ephemeral_storage, other.ephemeral_storage);
  for (const auto& [name, amount] : other.extended) apply(into.extended[name], amount);
}
void add(Resources& into, const Resources& other) {
  combine(into, other, [](const auto& a, const auto& b) { return a + b; });
}
void raise_to(Resources& into, const Resources& other) {
  combine(into, other, [](const auto& a, const auto& b) { return std::max(a, b); });
}

// kube-scheduler's PodRequests: containers run together with all sidecars; init containers run one
// after another, each beside the sidecars started before it; the larger of the two counts.
Resources total(const wire::PodSpec& spec, ResourceList wire::ContainerResources::*list) {
  Resources running;
  for (const Container& c : spec.containers) add(running, (c.resources.*list).value);
  Resources sidecars;
  Resources peak;
  for (const Container& c : spec.init_containers) {
    Resources now = sidecars;
    add(now, (c.resources.*list).value);
    raise_to(peak, now);
    if (c.restart_policy == "Always") sidecars = std::move(now);
  }
  add(running, sidecars);
  raise_to(running, peak);
  if (spec.resources) {  // pod-level amounts replace those of the containers
    const Resources& whole = ((*spec.resources).*list).value;
    if (whole.cpu.count() != 0) running.cpu = whole.cpu;
    if (whole.memory.count() != 0) running.memory = whole.memory;
    for (const auto& [name, amount] : whole.extended) running.extended[name] = amount;
  }
  return running;
}

// The API server merges matchLabelKeys into the selector of affinity terms itself; doing it again
// is harmless. In spread constraints it leaves that to the scheduler.
void merge_label_keys(LabelSelector& selector, const std::vector<std::string>& keys,
                      const StringMap& labels, std::string_view op) {
  for (const std::string& key : keys) {
    const std::string* value = labels.find(key);
    if (value == nullptr) continue;
    SelectorRequirement requirement{key, std::string{op}, {*value}};
    auto& held = selector.match_expressions;
    if (std::find(held.begin(), held.end(), requirement) == held.end()) {
      held.push_back(std::move(requirement));
    }
  }
}

std::vector<PodAffinityTerm> affinity_terms(std::vector<AffinityTerm>& terms,
                                            const StringMap& labels) {
  std::vector<PodAffinityTerm> out;
  out.reserve(terms.size());
  for (AffinityTerm& term : terms) {
    PodAffinityTerm& made = out.emplace_back();
    made.has_label_selector = term.label_selector.has_value();
    if (term.label_selector) made.label_selector = std::move(*term.label_selector);
    merge_label_keys(made.label_selector, term.match_label_keys, labels, "In");
    merge_label_keys(made.label_selector, term.mismatch_label_keys, labels, "NotIn");
    made.namespaces = std::move(term.namespaces);
    made.any_namespace = term.namespace_selector.value;
    made.topology_key = std::move(term.topology_key);
  }
  return out;
}

std::vector<TopologySpreadConstraint> spread(std::vector<wire::SpreadConstraint>& constraints,
                                             const StringMap& labels) {
  std::vector<TopologySpreadConstraint> out;
  for (wire::SpreadConstraint& constraint : constraints) {
    if (constraint.when_unsatisfiable == "ScheduleAnyway") continue;
    TopologySpreadConstraint& made = out.emplace_back();
    made.max_skew = constraint.max_skew;
    made.topology_key = std::move(constraint.topology_key);
    if (constraint.label_selector) {
      made.label_selector = std::move(*constraint.label_selector);
    } else {  // none selects no pod at all, unlike an empty one
      made.label_selector.match_expressions.push_back({{}, "In", {}});
    }
    merge_label_keys(made.label_selector, constraint.match_label_keys, labels, "In");
    made.min_domains = constraint.min_domains;
    if (!constraint.node_affinity_policy.empty()) {
      made.node_affinity_policy = std::move(constraint.node_affinity_policy);
    }
    if (!constraint.node_taints_policy.empty()) {
      made.node_taints_policy = std::move(constraint.node_taints_policy);
    }
  }
  return out;
}

void take_volumes(PodTemplate& out, std::vector<wire::Volume>& volumes,
                  const std::string& pod_name) {
  for (wire::Volume& volume : volumes) {
    if (volume.claim) out.claims.push_back(std::move(volume.claim->claim_name));
    // A generic ephemeral volume is a claim named after pod and volume.
    if (volume.ephemeral.value) out.claims.push_back(pod_name + "-" + volume.name);
    const bool on_disk = volume.empty_dir && volume.empty_dir->medium != "Memory" &&
                         volume.empty_dir->medium.rfind("HugePages", 0) != 0;
    out.local_storage = out.local_storage || on_disk || volume.host_path.value;
  }
}

void take_ports(PodTemplate& out, std::vector<Container>& containers) {
  for (Container& container : containers) {
    for (wire::ContainerPort& port : container.ports) {
      if (port.host_port == 0) continue;
      if (port.protocol.empty()) port.protocol = "TCP";
      out.host_ports.push_back({port.host_port, std::move(port.protocol), std::move(port.host_ip)});
    }
  }
}

PodTemplate make_template(wire::Pod& pod, const std::string& name, bool daemon) {
  PodTemplate out;
  out.labels = std::move(pod.meta.labels);
  out.requests = total(pod.spec, &wire::ContainerResources::requests);
  out.limits = total(pod.spec, &wire::ContainerResources::limits);
  add(out.requests, pod.spec.overhead.value);
  out.node_selector = std::move(pod.spec.node_selector);
  // A DaemonSet pins each pod to its node by name here. Kept, every pod would be a template of its
  // own; it is not needed, because such pods are never moved.
  if (!daemon) out.required_node_affinity = std::move(pod.spec.affinity.node.required.terms);
  out.required_pod_affinity = affinity_terms(pod.spec.affinity.pod.required, out.labels);
  out.required_pod_anti_affinity = affinity_terms(pod.spec.affinity.pod_anti.required, out.labels);
  out.topology_spread = spread(pod.spec.topology_spread, out.labels);
  out.tolerations = std::move(pod.spec.tolerations);
  take_ports(out, pod.spec.containers);
  take_ports(out, pod.spec.init_containers);
  take_volumes(out, pod.spec.volumes, name);
  out.scheduling_gated = !pod.spec.scheduling_gates.empty();
  out.priority = pod.spec.priority;
  out.scheduler_name = std::move(pod.spec.scheduler_name);
  return out;
}

PodPhase phase_of(std::string_view word) {
  if (word == "Running") return PodPhase::running;
  if (word == "Succeeded") return PodPhase::succeeded;
  if (word == "Failed") return PodPhase::failed;
  if (word == "Unknown") return PodPhase::unknown;
  return PodPhase::pending;
}

void take_conditions(Pod& out, const std::vector<wire::PodCondition>& conditions) {
  for (const wire::PodCondition& condition : conditions) {
    if (condition.type == "Ready") out.ready = condition.status == "True";
    if (condition.type != "PodScheduled") continue;
    out.scheduled_transition = condition.last_transition_time;
    if (condition.status == "True") {
      out.scheduled = PodScheduled::yes;
    } else if (condition.reason == "Unschedulable") {
      out.scheduled = PodScheduled::unschedulable;
    } else if (condition.reason == "SchedulingGated") {
      out.scheduled = PodScheduled::gated;
    } else {
      out.scheduled = PodScheduled::no_other;
    }
  }
}

}  // namespace

namespace wire {

bool ResourceList::insert(std::string_view key, std::string_view text) {
  const auto amount = key == "cpu" ? parse_quantity_milli(text) : parse_quantity(text);
  if (!amount) return false;
  if (key == "cpu") {
    value.cpu = Millicores{*amount};
  } else if (key == "memory") {
    value.memory = Bytes{*amount};
  } else if (key == "ephemeral-storage") {
    value.ephemeral_storage = Bytes{*amount};
  } else if (key == "pods") {
    value.pods = *amount;
  } else {
    value.extended[std::string{key}] = *amount;
  }
  return true;
}

bool SteeringAnnotations::steers(std::string_view key) {
  const auto starts = [&](std::string_view prefix) {
    return key.substr(0, prefix.size()) == prefix;
  };
  return starts("kwatt.dev/") || starts("lab.kwatt.dev/") ||
         key == "cluster-autoscaler.kubernetes.io/safe-to-evict" ||
         key == "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" ||
         key == "karpenter.sh/do-not-disrupt" ||
         key == "descheduler.alpha.kubernetes.io/prefer-no-eviction" ||
         key == "kubernetes.io/config.mirror";
}

}  // namespace wire

Result<void> decode_into(MutableJson json, Pod& out, Interner* interner) {
  wire::Pod pod;
  if (auto done = decode_into(json, type_of<wire::Pod>(), &pod); !done) return done;
  out = Pod{};
  out.namespace_name = std::move(pod.meta.namespace_name);
  out.name = std::move(pod.meta.name);
  out.uid = std::move(pod.meta.uid);
  out.resource_version = std::move(pod.meta.resource_version);
  const auto controller =
      std::find_if(pod.meta.owner_references.begin(), pod.meta.owner_references.end(),
                   [](const OwnerReference& owner) { return owner.controller; });
  if (controller != pod.meta.owner_references.end()) {
    out.owner = interner != nullptr ? interner->intern(std::move(*controller))
                                    : std::make_shared<const OwnerReference>(*controller);
  }
  out.mirror = pod.meta.annotations.contains("kubernetes.io/config.mirror");
  pod.meta.annotations.erase("kubernetes.io/config.mirror");
  out.annotations = std::move(pod.meta.annotations);
  out.creation_timestamp = pod.meta.creation_timestamp;
  out.deletion_timestamp = pod.meta.deletion_timestamp;
  out.node_name = std::move(pod.spec.node_name);
  out.nominated_node_name = std::move(pod.status.nominated_node_name);
  out.phase = phase_of(pod.status.phase);
  take_conditions(out, pod.status.conditions);
  PodTemplate made = make_template(pod, out.name, out.daemon());
  out.spec = interner != nullptr ? interner->intern(std::move(made))
                                 : std::make_shared<const PodTemplate>(std::move(made));
  return {};
}

Result<void> decode_into(MutableJson json, PodTemplateObject& out, Interner* interner) {
  wire::PodTemplateObject object;
  if (auto done = decode_into(json, type_of<wire::PodTemplateObject>(), &object); !done)
    return done;
  out = PodTemplateObject{};
  out.meta = std::move(object.meta);
  PodTemplate made = make_template(object.pod, out.meta.name, false);
  out.spec = interner != nullptr ? interner->intern(std::move(made))
                                 : std::make_shared<const PodTemplate>(std::move(made));
  return {};
}

const std::string& resource_version_of(const Pod& pod) {
  return pod.resource_version;
}

}  // namespace kwatt::api
