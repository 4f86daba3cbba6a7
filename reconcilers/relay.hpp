#pragma once
// Which awake node sends the magic packet for one that sleeps. PURE.
#include <optional>
#include <string>
#include <vector>

#include "api/core.hpp"
#include "api/node_power.hpp"
#include "hardware/wake_lan.hpp"
#include "planner/steps.hpp"

namespace kwatt::reconcilers {

struct Relay {
  std::string node, zone;
  std::size_t notes = 0;  // it carries already
  int attempt = 0;        // the last one of this wake that went through it; 0: none
};
// A relay that has not been asked in this wake; among them one of the same zone (a magic packet
// does not leave its network segment), with the fewest notes, by name. If all were asked, the one
// whose turn was longest ago. nullopt: there is none.
std::optional<std::string> choose_relay(const std::string& zone, std::vector<Relay> relays);

// Can this node send? Ready, not on its way out, with an agent that has reported in the last
// quarter of an hour.
bool can_relay(const api::Node& node, const api::NodePower* machine, TimePoint now);

// What must go from a relay's annotation: notes of wakes that are over. `operation_of` gives the
// operation in progress on a node. nullopt: nothing; also if somebody else's text stands there.
template <class OperationOf>
std::optional<planner::PatchNode> outdated_notes(const api::Node& relay,
                                                 OperationOf&& operation_of) {
  const auto text = relay.meta.annotations.get(hardware::kWakeAnnotation);
  if (text.empty()) return std::nullopt;
  const auto notes = hardware::parse_wake_notes(text);
  if (!notes) return std::nullopt;
  std::vector<hardware::WakeNote> kept;
  for (const hardware::WakeNote& note : *notes) {
    const api::Operation operation = operation_of(note.node);
    const bool waking = operation.kind == api::OperationKind::PowerOn;
    if (waking && operation.id == note.operation()) kept.push_back(note);
  }
  if (kept.size() == notes->size()) return std::nullopt;
  planner::PatchNode patch;
  if (kept.empty()) {
    patch.remove_annotations.emplace_back(hardware::kWakeAnnotation);
  } else {
    patch.set_annotations.set(hardware::kWakeAnnotation, hardware::format_wake_notes(kept));
  }
  return patch;
}

}  // namespace kwatt::reconcilers
