#include "api/encode.hpp"

#include "api/estimator.hpp"
#include "api/json_writer.hpp"

namespace kwatt::api {
namespace {

constexpr std::string_view kOurApiVersion = "kwatt.dev/v1alpha1";
constexpr std::size_t kNoteLimit = 1024;  // the API server refuses longer notes

template <class T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

// Accessors of TypeInfo serve the decoder too and so take void*; none of them writes here.
void* mutable_pointer(const void* value) {
  return const_cast<void*>(value);
}

// The first `limit` bytes at most, never a half character.
std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return text.substr(0, limit);
}

void write_object(JsonWriter& out, const TypeInfo& type, const void* value) {
  out.begin();
  if (!type.object_kind.empty()) {
    out.text("apiVersion", type.api_version).text("kind", type.object_kind);
  }
  for (const FieldInfo& field : type.fields) {
    const void* member = field.member(mutable_pointer(value));
    const TypeInfo& member_type = field.type();
    if (field.omit == Omit::when_empty && is_empty(member_type, member)) continue;
    // An unset optional is never written: there is nothing to write.
    if (member_type.kind == TypeKind::optional && member_type.size(member) == 0) continue;
    out.key(field.name).value(member_type, member);
  }
  out.end();
}

JsonWriter& begin_apply(JsonWriter& out, std::string_view kind, std::string_view name,
                        std::string_view resource_version) {
  out.begin().text("apiVersion", kOurApiVersion).text("kind", kind);
  out.begin("metadata").text("name", name);
  out.text_unless_empty("resourceVersion", resource_version);
  return out.end();
}

}  // namespace

bool is_empty(const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case TypeKind::boolean:
    case TypeKind::presence:
      return !as<bool>(value);
    case TypeKind::integer:
      return as<std::int64_t>(value) == 0;
    case TypeKind::string:
      return as<std::string>(value).empty();
    case TypeKind::enumeration:
      return type.word_index(value) == 0;
    case TypeKind::duration:
      return as<Duration>(value) == Duration{0};
    case TypeKind::timestamp:
      return false;
    case TypeKind::list:
    case TypeKind::string_map:
    case TypeKind::object_map:
    case TypeKind::optional:
      return type.size(value) == 0;
    case TypeKind::object:
      for (const FieldInfo& field : type.fields) {
        if (!is_empty(field.type(), field.member(mutable_pointer(value)))) return false;
      }
      return true;
  }
  return false;
}

JsonWriter& JsonWriter::value(const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case TypeKind::boolean:
    case TypeKind::presence:
      return boolean(as<bool>(value));
    case TypeKind::integer:
      return integer(as<std::int64_t>(value));
    case TypeKind::string:
      return text(as<std::string>(value));
    case TypeKind::enumeration: {
      const std::size_t index = type.word_index(value);
      return text(index < type.words.size() ? type.words[index] : std::string_view{});
    }
    case TypeKind::duration:
      return text(format_go_duration(as<Duration>(value)));
    case TypeKind::timestamp:
      return text(format_rfc3339(as<TimePoint>(value)));
    case TypeKind::optional:
      if (type.size(value) == 0) return null();
      return this->value(type.element(), type.at(mutable_pointer(value), 0));
    case TypeKind::list:
      begin_list();
      for (std::size_t i = 0; i < type.size(value); ++i) {
        this->value(type.element(), type.at(mutable_pointer(value), i));
      }
      return end_list();
    case TypeKind::string_map:
      begin();
      for (std::size_t i = 0; type.entry != nullptr && i < type.size(value); ++i) {
        std::string_view entry_key;
        std::string_view entry_text;
        type.entry(value, i, entry_key, entry_text);
        text(entry_key, entry_text);
      }
      return end();
    case TypeKind::object_map:
      begin();
      for (std::size_t i = 0; i < type.size(value); ++i) {
        std::string_view entry_key;
        const void* entry = type.placed(mutable_pointer(value), i, entry_key);
        key(entry_key).value(type.element(), entry);
      }
      return end();
    case TypeKind::object:
      write_object(*this, type, value);
      return *this;
  }
  return *this;
}

std::string encode(const TypeInfo& type, const void* value) {
  JsonWriter out;
  out.value(type, value);
  return out.take();
}

std::string encode(const Lease& lease) {
  JsonWriter out;
  out.begin().text("apiVersion", "coordination.k8s.io/v1").text("kind", "Lease");
  out.key("metadata").value(type_of<ObjectMeta>(), &lease.meta);
  out.begin("spec").text("holderIdentity", lease.holder_identity);
  out.key("leaseDurationSeconds").integer(lease.lease_duration_seconds);
  out.key("leaseTransitions").integer(lease.lease_transitions);
  out.text_unless_empty("acquireTime", lease.acquire_time);
  out.text_unless_empty("renewTime", lease.renew_time);
  out.end().end();
  return out.take();
}

std::string encode(const EventBody& event) {
  JsonWriter out;
  out.begin().text("apiVersion", "events.k8s.io/v1").text("kind", "Event");
  out.begin("metadata").text("name", event.name).text("namespace", event.namespace_name).end();
  out.begin("regarding").text("apiVersion", event.regarding_api_version);
  out.text("kind", event.regarding_kind).text("name", event.regarding_name);
  out.text_unless_empty("namespace", event.regarding_namespace);
  out.text_unless_empty("uid", event.regarding_uid).end();
  if (!event.related_name.empty()) {
    out.begin("related").text("apiVersion", event.related_api_version);
    out.text("kind", event.related_kind).text("name", event.related_name);
    out.text_unless_empty("namespace", event.related_namespace);
    out.text_unless_empty("uid", event.related_uid).end();
  }
  out.text("type", event.type).text("reason", event.reason).text("action", event.action);
  out.text("note", cut(event.note, kNoteLimit));
  out.text("reportingController", event.reporting_controller);
  out.text("reportingInstance", event.reporting_instance);
  out.text("eventTime", format_micro_time(event.time));
  if (event.series_count > 1) {
    out.begin("series").key("count").integer(event.series_count);
    out.text("lastObservedTime", format_micro_time(event.series_last)).end();
  }
  out.end();
  return out.take();
}

std::string eviction(const std::string& namespace_name, const std::string& pod_name,
                     const std::string& uid) {
  JsonWriter out;
  out.begin().text("apiVersion", "policy/v1").text("kind", "Eviction");
  out.begin("metadata").text("name", pod_name).text("namespace", namespace_name).end();
  if (!uid.empty()) {
    out.begin("deleteOptions").begin("preconditions").text("uid", uid).end().end();
  }
  out.end();
  return out.take();
}

std::string binding(const std::string& namespace_name, const std::string& pod_name,
                    const std::string& uid, const std::string& node) {
  JsonWriter out;
  out.begin().text("apiVersion", "v1").text("kind", "Binding");
  out.begin("metadata").text("name", pod_name).text("namespace", namespace_name);
  if (!uid.empty()) out.text("uid", uid);
  out.end();
  out.begin("target").text("apiVersion", "v1").text("kind", "Node").text("name", node).end();
  out.end();
  return out.take();
}

std::string delete_options(const std::string& precondition_uid) {
  JsonWriter out;
  out.begin().text("apiVersion", "v1").text("kind", "DeleteOptions");
  if (!precondition_uid.empty()) {
    out.begin("preconditions").text("uid", precondition_uid).end();
  }
  out.end();
  return out.take();
}

std::string apply_status(const ObjectMeta& meta, const EnergyPolicyStatus& status) {
  JsonWriter out;
  begin_apply(out, "EnergyPolicy", meta.name, meta.resource_version);
  out.key("status").value(type_of<EnergyPolicyStatus>(), &status).end();
  return out.take();
}

std::string apply_status(const ObjectMeta& meta, const NodePowerStatus& status) {
  NodePowerStatus ours = status;
  ours.report = {};
  JsonWriter out;
  begin_apply(out, "NodePower", meta.name, meta.resource_version);
  out.key("status").value(type_of<NodePowerStatus>(), &ours).end();
  return out.take();
}

std::string apply_status(std::string_view api_version, const ObjectMeta& meta,
                         const EstimatorStatus& status) {
  JsonWriter out;
  out.begin().text("apiVersion", api_version).text("kind", "Estimator");
  out.begin("metadata").text("name", meta.name).text("namespace", meta.namespace_name);
  out.text_unless_empty("resourceVersion", meta.resource_version).end();
  out.key("status").value(type_of<EstimatorStatus>(), &status).end();
  return out.take();
}

std::string apply_status(const ObjectMeta& meta, const SiteStatus& status) {
  JsonWriter out;
  begin_apply(out, "Site", meta.name, meta.resource_version);
  out.key("status").value(type_of<SiteStatus>(), &status).end();
  return out.take();
}

std::string apply_status(const ObjectMeta& meta, const SiteRecommendationStatus& status) {
  JsonWriter out;
  begin_apply(out, "SiteRecommendation", meta.name, meta.resource_version);
  out.key("status").value(type_of<SiteRecommendationStatus>(), &status).end();
  return out.take();
}

std::string apply_report(const std::string& node_name, const AgentReport& report) {
  JsonWriter out;
  begin_apply(out, "NodePower", node_name, {});
  out.begin("status").key("report").value(type_of<AgentReport>(), &report).end().end();
  return out.take();
}

}  // namespace kwatt::api
