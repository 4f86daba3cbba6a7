#pragma once
// Pods that kube-scheduler has chosen a slow or capped node for: it gets its full speed back.
//
// Known from the pods bound there, or, before that, from the annotation kwatt.dev/restore, by which
// the extender's bind verb asks on behalf of a pod that it is about to bind (docs/adr/0006).
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "planner/snapshot.hpp"

namespace kwatt::planner {

struct Arrival {
  std::string pod;  // "ns/name"
  TimePoint at;
};

// {"pod":…,"time":…}, the annotation's value.
std::string format_restore(const Arrival& arrival);
// nullopt: not such an object.
std::optional<Arrival> parse_restore(std::string_view json);

// The newest workload pod that was scheduled to the node, or is announced for it, at `since` or
// later. kube-scheduler's times are whole seconds, so `since` counts as the second it is in.
std::optional<Arrival> arrival_since(const NodeView& node, TimePoint since);

// When the settings among `keys` that we hold on the node were last written: the time of its
// request note; nullopt: we hold none of them.
std::optional<TimePoint> held_since(const NodeView& node, const std::set<std::string>& keys);

}  // namespace kwatt::planner
