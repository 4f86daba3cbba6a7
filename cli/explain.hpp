#pragma once
// Why a node, pod or policy is as it is: sentences with numbers, made from the typed fields of the
// objects. Pure. What the controller wrote for people (messages, notes) is passed on, never read.
#include <optional>
#include <string>
#include <vector>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "cli/read.hpp"

namespace kwatt::cli {

struct EventLine {
  std::optional<TimePoint> time;  // of the newest occurrence
  std::string type, reason, action, note;
  std::int64_t count = 1;
  bool operator==(const EventLine&) const = default;
};

struct Explanation {
  std::string kind, namespace_name, name;
  std::string state;                  // PowerState of a node, phase of a pod, mode of a policy
  std::string reason;                 // word of api/reason.hpp; "": no decision
  std::string policy;                 // that decided
  std::string sentence;               // the answer
  std::string message;                // the controller's own words about it
  std::string change;                 // what would change it
  std::optional<TimePoint> earliest;  // when that can be at the earliest, as far as timers say
  std::vector<std::string> facts;     // further sentences
  std::vector<EventLine> events;      // newest first
};

struct NodeFacts {
  std::string name;
  std::optional<api::Node> node;
  std::optional<api::NodePower> machine;
  std::optional<api::EnergyPolicy> policy;  // that decision.policy names
  std::vector<api::Pod> pods;               // bound to the node
  std::optional<std::int64_t> pending;      // pods that fit nowhere, in the whole cluster
  std::vector<EventView> events;            // about the node
};
Explanation explain_node(const NodeFacts& facts, TimePoint now);

struct PodFacts {
  api::Pod pod;
  std::optional<NodeFacts> node;  // the pod's
  std::vector<api::NodePower> machines;
  std::vector<api::EnergyPolicy> policies;
  std::vector<EventView> events;
};
Explanation explain_pod(const PodFacts& facts, TimePoint now);

struct PolicyFacts {
  api::EnergyPolicy policy;
  std::vector<api::NodePower> machines;  // all
  std::vector<EventView> events;
};
Explanation explain_policy(const PolicyFacts& facts, TimePoint now);

// For people, and as JSON.
std::string text_of(const Explanation& explanation, TimePoint now);
std::string json_of(const Explanation& explanation);

// Newest first, at most `limit`.
std::vector<EventLine> event_lines(const std::vector<EventView>& events, std::size_t limit = 5);
// "2 InUse, 1 MinAwake", the most frequent first.
std::string reason_counts(const std::vector<const api::NodePower*>& machines);

}  // namespace kwatt::cli
