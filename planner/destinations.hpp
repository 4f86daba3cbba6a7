#pragma once
// Which nodes may receive pods, and the annotation with which people hold a node on or off.
#include <optional>
#include <string>

#include "planner/room.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner {

// The node's tier as a destination; Tier::none: it must not receive pods.
Tier tier_of(const NodeView& node, TimePoint now);
// A sentence for a node that is none.
std::string why_no_destination(const NodeView& node, TimePoint now);

// Does the node count towards minAwake? It must be on, ready, schedulable, not on its way out, and
// open to ordinary pods: a tainted control-plane node is no capacity.
bool counts_as_awake(const NodeView& node);

// annotation kwatt.dev/override: "on,until=2026-11-20T18:00:00Z" or "off,until=…"; without until it
// holds until it is removed. An override that is over, or absent, is none.
struct Override {
  enum class Kind { none, on, off, not_understood } kind = Kind::none;
  std::optional<TimePoint> until;
};
Override override_of(const NodeView& node, TimePoint now);
// The sentence for a value that is not understood.
std::string override_problem(std::string_view value);

}  // namespace kwatt::planner
