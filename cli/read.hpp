#pragma once
// Objects from the API server, typed.
#include <string>
#include <vector>

#include "api/decode.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "api/site_recommendation.hpp"
#include "cli/verb.hpp"
#include "kube/client.hpp"

namespace kwatt::cli {

// What `why` shows of an event (events.k8s.io/v1).
struct EventSeries {
  std::int64_t count = 0;
  std::optional<TimePoint> last_observed_time;
  bool operator==(const EventSeries&) const = default;
};
struct EventView {
  api::ObjectMeta meta;
  std::string type, reason, action, note;
  std::optional<TimePoint> event_time;
  EventSeries series;
  std::optional<TimePoint> deprecated_last_timestamp;
  std::int64_t deprecated_count = 0;  // of events in the older API, e.g. the kubelet's

  TimePoint last() const;      // the newest occurrence
  std::int64_t count() const;  // how often, at least 1
};

// One object. Errors: not_found with a sentence that names it, others as kube::Client.
template <class T>
kube::Task<Result<T>> read(Session& session, const kube::Resource& resource, kube::Name name);
// All objects of a kind, page by page; `selector` is "" or e.g. "fieldSelector=spec.nodeName=a"
// (already encoded).
template <class T>
kube::Task<Result<std::vector<T>>> read_all(Session& session, const kube::Resource& resource,
                                            std::string selector = {},
                                            std::string namespace_name = {});

// The same, but nullopt where there is none.
template <class T>
kube::Task<Result<std::optional<T>>> find(Session& session, const kube::Resource& resource,
                                          kube::Name name) {
  auto found = co_await read<T>(session, resource, std::move(name));
  if (found) co_return std::optional<T>(std::move(*found));
  if (found.error().code == ErrorCode::not_found) co_return std::optional<T>();
  co_return found.error();
}

// "node", "pod", "NodePower", "policy": as people call it in a sentence.
std::string_view noun(const kube::Resource& resource);

// Where a field selector is needed: "fieldSelector=KEY%3DVALUE".
std::string field_selector(std::string_view key, std::string_view value);

// Takes node/NAME, nodes/NAME, no/NAME, npw/NAME, nodepower/NAME or NAME.
Result<std::string> node_name(const std::string& argument);
// Takes policy/NAME, enp/NAME, energypolicy/NAME, energypolicies/NAME or NAME.
Result<std::string> policy_name(const std::string& argument);
// Is this the name of a node and its NodePower, of a policy, of a pod? nullopt: none of them.
enum class Kind { node, policy, pod };
std::optional<Kind> kind_of(std::string_view word);
// Like kubectl, a name must be one before it is put into a sentence or a path.
Result<std::string> object_name(const std::string& name, std::string_view what);

}  // namespace kwatt::cli
