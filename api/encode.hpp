#pragma once
// Values → JSON text, driven by the tables of describe_*.cpp. Specs are written whole, in status
// and metadata what says nothing is left out (Omit in type_info.hpp). Never fails.
//
//   std::string body = encode(policy);                       // apiVersion, kind, metadata, …
//   std::string body = apply_status(policy.meta, policy.status);   // for /status, manager
//                                                                  // kwatt-controller-status
//   std::string body = apply_report(node_name, report);            // for /status, kwatt-agent
//   std::string body = encode(lease), encode(event), eviction("ns", "pod", "uid")
#include <string>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "api/site_recommendation.hpp"
#include "api/type_info.hpp"

namespace kwatt::api {

// The value as JSON; top-level objects start with apiVersion and kind.
std::string encode(const TypeInfo& type, const void* value);

template <class T>
std::string encode(const T& value) {
  return encode(type_of<T>(), &value);
}
// The Kubernetes kinds we write whole.
std::string encode(const Lease& lease);

// An Event of events.k8s.io/v1, as it is created.
struct EventBody {
  std::string namespace_name = "default";  // events of cluster-scoped objects live in "default"
  std::string name;                        // unique, e.g. "<object>.<hex of time and counter>"
  std::string regarding_api_version, regarding_kind, regarding_name, regarding_namespace,
      regarding_uid;
  std::string related_api_version, related_kind, related_name, related_namespace,
      related_uid;                   // left out without a related_name
  std::string type = "Normal";       // or Warning
  std::string reason, action, note;  // the note is cut to 1,024 bytes, between characters
  std::string reporting_controller = "kwatt.dev/controller", reporting_instance;
  TimePoint time;
  // A series: more than one similar event. 0: none.
  std::int64_t series_count = 0;
  TimePoint series_last;
};
std::string encode(const EventBody& event);

// Body of POST …/pods/NAME/eviction; the uid protects a namesake that came since.
std::string eviction(const std::string& namespace_name, const std::string& pod_name,
                     const std::string& uid);
// Body of POST …/pods/NAME/binding; the uid protects a namesake.
std::string binding(const std::string& namespace_name, const std::string& pod_name,
                    const std::string& uid, const std::string& node);
// Body of DELETE with a uid precondition.
std::string delete_options(const std::string& precondition_uid);

// Server-side apply bodies for the status subresource. With `meta.resource_version` set the API
// server answers 409 if the object changed since: that is how an operation is committed.
std::string apply_status(const ObjectMeta& meta, const EnergyPolicyStatus& status);
// All of the status but `report`, which belongs to the agent.
std::string apply_status(const ObjectMeta& meta, const NodePowerStatus& status);
std::string apply_status(const ObjectMeta& meta, const SiteStatus& status);
std::string apply_status(const ObjectMeta& meta, const SiteRecommendationStatus& status);
// Only status.report, by the node's agent.
std::string apply_report(const std::string& node_name, const AgentReport& report);

}  // namespace kwatt::api
