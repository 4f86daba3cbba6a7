// The other core kinds, and what surrounds objects: Status, lists, watch frames.
#include "api/core_wire.hpp"
#include "api/decode.hpp"

namespace kwatt::api {
namespace wire {
namespace {

struct Address {
  std::string type, address;
};
struct NodeSpec {
  bool unschedulable = false;
  std::vector<Taint> taints;
  std::string provider_id;
};
struct NodeStatus {
  ResourceList allocatable;
  std::vector<Condition> conditions;
  std::vector<Address> addresses;
};
struct Node {
  ObjectMeta meta;
  NodeSpec spec;
  NodeStatus status;
};

struct BudgetSpec {
  std::optional<LabelSelector> selector;
};
struct BudgetStatus {
  std::int64_t disruptions_allowed = 0, desired_healthy = 0, current_healthy = 0, expected_pods = 0;
};
struct DisruptionBudget {
  ObjectMeta meta;
  BudgetSpec spec;
  BudgetStatus status;
};

struct ClaimSpec {
  std::string volume_name;
};
struct Claim {
  ObjectMeta meta;
  ClaimSpec spec;
};

struct VolumeAffinity {
  NodeSelector required;
};
struct VolumeSpec {
  VolumeAffinity node_affinity;
};
struct PersistentVolume {
  ObjectMeta meta;
  VolumeSpec spec;
};

struct AttachmentSpec {
  std::string node_name;
};
struct Attachment {
  ObjectMeta meta;
  AttachmentSpec spec;
};

struct LeaseSpec {
  std::string holder_identity;
  std::int64_t lease_duration_seconds = 0, lease_transitions = 0;
  std::string acquire_time, renew_time;
};
struct Lease {
  ObjectMeta meta;
  LeaseSpec spec;
};

struct WorkloadSpec {
  std::int64_t replicas = 1;  // the API server's default, for bodies that were not defaulted
};
struct Workload {
  std::string kind;
  ObjectMeta meta;
  WorkloadSpec spec;
};

struct LocalReference {
  std::string name;
};
struct BufferSpec {
  std::string strategy;
  LocalReference pod_template;
  std::optional<std::int64_t> replicas;
  ResourceList limits;
};
struct BufferStatus {
  LocalReference pod_template;
  std::optional<std::int64_t> replicas;
};
struct CapacityBuffer {
  ObjectMeta meta;
  BufferSpec spec;
  BufferStatus status;
};

struct HealthCheckSpec {
  LabelSelector selector;
};
struct HealthCheck {
  ObjectMeta meta;
  HealthCheckSpec spec;
};

struct ListMetadata {
  std::string resource_version, continue_token;
  std::int64_t remaining_item_count = 0;
};
struct ListEnvelope {
  std::string kind;
  ListMetadata meta;
};

struct MetaOnly {
  std::string kind;
  ObjectMeta meta;
};

}  // namespace
}  // namespace wire

KWATT_WIRE(wire::Address, field<&wire::Address::type>("type"),
           field<&wire::Address::address>("address"));
KWATT_WIRE(wire::NodeSpec, field<&wire::NodeSpec::unschedulable>("unschedulable"),
           field<&wire::NodeSpec::taints>("taints"),
           field<&wire::NodeSpec::provider_id>("providerID"));
KWATT_WIRE(wire::NodeStatus, field<&wire::NodeStatus::allocatable>("allocatable"),
           field<&wire::NodeStatus::conditions>("conditions"),
           field<&wire::NodeStatus::addresses>("addresses"));
KWATT_WIRE(wire::Node, field<&wire::Node::meta>("metadata"), field<&wire::Node::spec>("spec"),
           field<&wire::Node::status>("status"));
KWATT_WIRE(wire::BudgetSpec, field<&wire::BudgetSpec::selector>("selector"));
KWATT_WIRE(wire::BudgetStatus,
           field<&wire::BudgetStatus::disruptions_allowed>("disruptionsAllowed"),
           field<&wire::BudgetStatus::desired_healthy>("desiredHealthy"),
           field<&wire::BudgetStatus::current_healthy>("currentHealthy"),
           field<&wire::BudgetStatus::expected_pods>("expectedPods"));
KWATT_WIRE(wire::DisruptionBudget, field<&wire::DisruptionBudget::meta>("metadata"),
           field<&wire::DisruptionBudget::spec>("spec"),
           field<&wire::DisruptionBudget::status>("status"));
KWATT_WIRE(wire::ClaimSpec, field<&wire::ClaimSpec::volume_name>("volumeName"));
KWATT_WIRE(wire::Claim, field<&wire::Claim::meta>("metadata"), field<&wire::Claim::spec>("spec"));
KWATT_WIRE(wire::VolumeAffinity, field<&wire::VolumeAffinity::required>("required"));
KWATT_WIRE(wire::VolumeSpec, field<&wire::VolumeSpec::node_affinity>("nodeAffinity"));
KWATT_WIRE(wire::PersistentVolume, field<&wire::PersistentVolume::meta>("metadata"),
           field<&wire::PersistentVolume::spec>("spec"));
KWATT_WIRE(wire::AttachmentSpec, field<&wire::AttachmentSpec::node_name>("nodeName"));
KWATT_WIRE(wire::Attachment, field<&wire::Attachment::meta>("metadata"),
           field<&wire::Attachment::spec>("spec"));
KWATT_WIRE(wire::LeaseSpec, field<&wire::LeaseSpec::holder_identity>("holderIdentity"),
           field<&wire::LeaseSpec::lease_duration_seconds>("leaseDurationSeconds"),
           field<&wire::LeaseSpec::lease_transitions>("leaseTransitions"),
           field<&wire::LeaseSpec::acquire_time>("acquireTime"),
           field<&wire::LeaseSpec::renew_time>("renewTime"));
KWATT_WIRE(wire::LocalReference, field<&wire::LocalReference::name>("name"));
KWATT_WIRE(wire::BufferSpec, field<&wire::BufferSpec::strategy>("provisioningStrategy"),
           field<&wire::BufferSpec::pod_template>("podTemplateRef"),
           field<&wire::BufferSpec::replicas>("replicas"),
           field<&wire::BufferSpec::limits>("limits"));
KWATT_WIRE(wire::BufferStatus, field<&wire::BufferStatus::pod_template>("podTemplateRef"),
           field<&wire::BufferStatus::replicas>("replicas"));
KWATT_WIRE(wire::CapacityBuffer, field<&wire::CapacityBuffer::meta>("metadata"),
           field<&wire::CapacityBuffer::spec>("spec"),
           field<&wire::CapacityBuffer::status>("status"));
KWATT_WIRE(wire::HealthCheckSpec, field<&wire::HealthCheckSpec::selector>("selector"));
KWATT_WIRE(wire::HealthCheck, field<&wire::HealthCheck::meta>("metadata"),
           field<&wire::HealthCheck::spec>("spec"));
KWATT_WIRE(wire::Lease, field<&wire::Lease::meta>("metadata"), field<&wire::Lease::spec>("spec"));
KWATT_WIRE(wire::WorkloadSpec, field<&wire::WorkloadSpec::replicas>("replicas"));
KWATT_WIRE(wire::Workload, field<&wire::Workload::kind>("kind"),
           field<&wire::Workload::meta>("metadata"), field<&wire::Workload::spec>("spec"));
KWATT_WIRE(wire::ListMetadata, field<&wire::ListMetadata::resource_version>("resourceVersion"),
           field<&wire::ListMetadata::continue_token>("continue"),
           field<&wire::ListMetadata::remaining_item_count>("remainingItemCount"));
KWATT_WIRE(wire::ListEnvelope, field<&wire::ListEnvelope::kind>("kind"),
           field<&wire::ListEnvelope::meta>("metadata"));
KWATT_WIRE(wire::MetaOnly, field<&wire::MetaOnly::kind>("kind"),
           field<&wire::MetaOnly::meta>("metadata"));

KWATT_WIRE(StatusCause, field<&StatusCause::reason>("reason"),
           field<&StatusCause::message>("message"), field<&StatusCause::field>("field"));
KWATT_WIRE(StatusDetails, field<&StatusDetails::name>("name"), field<&StatusDetails::kind>("kind"),
           field<&StatusDetails::uid>("uid"), field<&StatusDetails::causes>("causes"),
           field<&StatusDetails::retry_after_seconds>("retryAfterSeconds"));
KWATT_WIRE(Status, field<&Status::kind>("kind"), field<&Status::status>("status"),
           field<&Status::message>("message"), field<&Status::reason>("reason"),
           field<&Status::code>("code"), field<&Status::details>("details"));
template const TypeInfo& type_of<Status>();

namespace {

template <class T>
Result<void> decode_wire(MutableJson json, T& out) {
  return decode_into(json, type_of<T>(), &out);
}

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

WatchType watch_type(std::string_view word) {
  if (word == "ADDED") return WatchType::added;
  if (word == "MODIFIED") return WatchType::modified;
  if (word == "DELETED") return WatchType::deleted;
  if (word == "BOOKMARK") return WatchType::bookmark;
  if (word == "ERROR") return WatchType::error;
  return WatchType::unknown;
}

// Finds the members of the outermost object without looking into them.
class Members {
 public:
  explicit Members(std::string& text) : text_(text) {}

  // Steps to the next member; false: no more, or not an object.
  bool next() {
    skip(at_ == 0 ? "{" : ",");
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    const std::size_t key_end = string_end(at_);
    if (key_end == std::string::npos) return false;
    key_ = std::string_view{text_}.substr(at_ + 1, key_end - at_ - 2);
    at_ = key_end;
    skip(":");
    begin_ = at_;
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '{' || text_[at_] == '[') {
      NestingScanner scanner;
      at_ = scanner.scan(text_, at_);
    } else if (text_[at_] == '"') {
      at_ = string_end(at_);
    } else {
      at_ = text_.find_first_of(",} \t\r\n", at_);
    }
    if (at_ == std::string::npos || at_ >= text_.size()) return false;
    return true;
  }
  std::string_view key() const { return key_; }
  std::string_view value() const { return std::string_view{text_}.substr(begin_, at_ - begin_); }
  MutableJson mutable_value() { return {text_.data() + begin_, at_ - begin_}; }

 private:
  void skip(std::string_view also) {
    at_ = text_.find_first_not_of(std::string{" \t\r\n"} + std::string{also}, at_);
    if (at_ == std::string::npos) at_ = text_.size();
  }
  std::size_t string_end(std::size_t at) const {
    for (++at; at < text_.size(); ++at) {
      if (text_[at] == '\\') {
        ++at;
      } else if (text_[at] == '"') {
        return at + 1;
      }
    }
    return std::string::npos;
  }

  std::string& text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
  std::string_view key_;
};

std::string_view unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

Result<void> decode_into(MutableJson json, Node& out, Interner*) {
  wire::Node node;
  if (auto done = decode_wire(json, node); !done) return done;
  out = Node{};
  out.meta = std::move(node.meta);
  out.unschedulable = node.spec.unschedulable;
  out.taints = std::move(node.spec.taints);
  out.provider_id = std::move(node.spec.provider_id);
  out.allocatable = std::move(node.status.allocatable.value);
  out.conditions = std::move(node.status.conditions);
  for (wire::Address& address : node.status.addresses) {
    if (address.type == "InternalIP" && out.internal_ip.empty()) {
      out.internal_ip = std::move(address.address);
    }
  }
  return {};
}

Result<void> decode_into(MutableJson json, PodDisruptionBudget& out, Interner*) {
  wire::DisruptionBudget budget;
  if (auto done = decode_wire(json, budget); !done) return done;
  out = PodDisruptionBudget{};
  out.meta = std::move(budget.meta);
  out.has_selector = budget.spec.selector.has_value();
  if (budget.spec.selector) out.selector = std::move(*budget.spec.selector);
  out.disruptions_allowed = budget.status.disruptions_allowed;
  out.desired_healthy = budget.status.desired_healthy;
  out.current_healthy = budget.status.current_healthy;
  out.expected_pods = budget.status.expected_pods;
  return {};
}

Result<void> decode_into(MutableJson json, PersistentVolumeClaim& out, Interner*) {
  wire::Claim claim;
  if (auto done = decode_wire(json, claim); !done) return done;
  out = {std::move(claim.meta), std::move(claim.spec.volume_name)};
  return {};
}

Result<void> decode_into(MutableJson json, PersistentVolume& out, Interner*) {
  wire::PersistentVolume volume;
  if (auto done = decode_wire(json, volume); !done) return done;
  out = {std::move(volume.meta), std::move(volume.spec.node_affinity.required.terms)};
  return {};
}

Result<void> decode_into(MutableJson json, VolumeAttachment& out, Interner*) {
  wire::Attachment attachment;
  if (auto done = decode_wire(json, attachment); !done) return done;
  out = {std::move(attachment.meta), std::move(attachment.spec.node_name)};
  return {};
}

Result<void> decode_into(MutableJson json, Lease& out, Interner*) {
  wire::Lease lease;
  if (auto done = decode_wire(json, lease); !done) return done;
  out = Lease{};
  out.meta = std::move(lease.meta);
  out.holder_identity = std::move(lease.spec.holder_identity);
  out.lease_duration_seconds = lease.spec.lease_duration_seconds;
  out.lease_transitions = lease.spec.lease_transitions;
  out.acquire_time = std::move(lease.spec.acquire_time);
  out.renew_time = std::move(lease.spec.renew_time);
  return {};
}

Result<void> decode_into(MutableJson json, Workload& out, Interner*) {
  wire::Workload workload;
  if (auto done = decode_wire(json, workload); !done) return done;
  out = {std::move(workload.meta), std::move(workload.kind), workload.spec.replicas};
  return {};
}

Result<void> decode_into(MutableJson json, CapacityBuffer& out, Interner*) {
  wire::CapacityBuffer buffer;
  if (auto done = decode_wire(json, buffer); !done) return done;
  out = CapacityBuffer{};
  out.meta = std::move(buffer.meta);
  out.strategy = std::move(buffer.spec.strategy);
  // What the buffer's own controller has worked out counts before what was asked for.
  out.template_name =
      std::move(buffer.status.pod_template.name.empty() ? buffer.spec.pod_template.name
                                                        : buffer.status.pod_template.name);
  out.replicas = buffer.status.replicas ? buffer.status.replicas : buffer.spec.replicas;
  if (buffer.spec.limits.value != Resources{}) out.limits = std::move(buffer.spec.limits.value);
  return {};
}

Result<void> decode_into(MutableJson json, NodeHealthCheck& out, Interner*) {
  wire::HealthCheck check;
  if (auto done = decode_wire(json, check); !done) return done;
  out = {std::move(check.meta), std::move(check.spec.selector)};
  return {};
}

Result<ListMeta> decode_list_envelope(std::string& envelope) {
  wire::ListEnvelope list;
  std::string copy = envelope;
  if (auto done = decode_wire({copy.data(), copy.size()}, list); !done) return done.error();
  ListMeta out;
  out.kind = std::move(list.kind);
  out.resource_version = std::move(list.meta.resource_version);
  out.continue_token = std::move(list.meta.continue_token);
  out.remaining_item_count = list.meta.remaining_item_count;
  if (out.kind == "Status") {
    if (auto done = decode(envelope, out.status); !done) return done.error();
  }
  return out;
}

Result<WatchFrame> open_watch_frame(std::string& text) {
  WatchFrame frame;
  std::string_view type;
  bool bare_status = false;
  Members members(text);
  while (members.next()) {
    if (members.key() == "type") type = unquoted(members.value());
    if (members.key() == "object") frame.object = members.mutable_value();
    if (members.key() == "kind") bare_status = members.value() == "\"Status\"";
  }
  // A proxy or an old server may answer with a Status instead of events: never an object.
  if (bare_status && frame.object.data == nullptr) {
    frame.type = WatchType::error;
    frame.type_text = "Status";
    if (auto done = decode(text, frame.status); !done) return done.error();
    return frame;
  }
  if (frame.object.data == nullptr || type.empty()) {
    return fail(ErrorCode::parse, "a watch frame without type or object");
  }
  frame.type_text = type;
  frame.type = watch_type(type);
  const std::string_view object{frame.object.data, frame.object.size};
  if (frame.type == WatchType::error) {
    if (auto done = decode(object, frame.status); !done) return done.error();
  } else if (frame.type == WatchType::bookmark || frame.type == WatchType::unknown) {
    wire::MetaOnly meta;
    if (auto done = decode(object, meta); !done) return done.error();
    frame.resource_version = std::move(meta.meta.resource_version);
    frame.initial_events_end = meta.meta.annotations.get(kInitialEventsEnd) == "true";
  }
  return frame;
}

}  // namespace kwatt::api
