#pragma once
// The annotation kwatt.dev/request: which of the agent's annotations on a node are ours, under
// which policy, and the id by which the agent tells us that it has applied them. Whatever else is
// set there was set by a person, and is never removed or changed by us.
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "planner/plan.hpp"

namespace kwatt::planner {

struct RequestNote {
  std::string id;
  std::optional<TimePoint> time;
  std::string policy;
  std::set<std::string> keys;  // annotation keys, e.g. "kwatt.dev/governor"
  // The cap among them belongs to a budget: the agent keeps it when the controller is gone, and
  // through its own restarts.
  bool keep_cap = false;
  bool operator==(const RequestNote&) const = default;
};

// {"id":…,"time":…,"policy":…,"keys":[…]}, and "keepCap":true where it is so.
std::string format_request(const RequestNote& note);
// nullopt: not such an object (a person may write anything there); then nothing is ours.
std::optional<RequestNote> parse_request(std::string_view json);
// The node's note; an empty one if there is none or it cannot be read.
RequestNote request_on(const api::Node& node);

// The keys of frequency settings and all keys that agents act on.
const std::set<std::string>& frequency_keys();
const std::set<std::string>& setting_keys();

// A key of `keys` that is set on the node and not ours: somebody has set it by hand.
std::optional<std::string> set_by_hand(const api::Node& node, const std::set<std::string>& keys);

// What a level asks for; "" and 0 ask for nothing.
api::AgentRequest request_of(const api::FrequencyLevel& level);
// As annotations.
api::StringMap annotations_of(const api::AgentRequest& request);
// The node carries exactly these annotations among `keys`, and all of them are ours.
bool in_force(const api::Node& node, const api::AgentRequest& request,
              const std::set<std::string>& keys);

}  // namespace kwatt::planner
