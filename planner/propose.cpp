#include "planner/propose.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::planner {

Action action_on(const Pass& pass, const NodeView& node, What what, Reason reason,
                 std::string message, Milliwatts expected_saving) {
  Action action;
  action.node = node.name();
  action.what = std::move(what);
  action.reason = reason;
  action.message = std::move(message);
  action.pre.node_uid = node.node->meta.uid;
  if (node.machine != nullptr) action.pre.machine_version = node.machine->meta.resource_version;
  action.pre.snapshot_seq = pass.snapshot.seq;
  action.expected_saving = expected_saving;
  return action;
}

bool wake_trusted(const Pass& pass, const NodeView& node) {
  return pass.spec.power_off.wake_test == api::WakeTest::Skip ||
         node.memory().wake_verified_at.has_value();
}

bool wake_test_requested(const NodeView& node) {
  return node.machine != nullptr &&
         node.machine->meta.annotations.get(names::kWakeTest) == "requested";
}

void wake_after(Proposal& proposal, Duration wait) {
  if (wait <= Duration{0}) return;
  proposal.next_wake = proposal.next_wake ? std::min(*proposal.next_wake, wait) : wait;
}

std::string watts_text(Milliwatts power) {
  const std::int64_t tenths = (power.count() + (power.count() < 0 ? -50 : 50)) / 100;
  const std::int64_t whole = tenths < 0 ? -tenths : tenths;
  return fmt::format("{}{}.{} W", tenths < 0 ? "-" : "", whole / 10, whole % 10);
}

std::string list_text(const std::vector<std::string>& names, std::size_t shown) {
  std::string text;
  const std::size_t count = std::min(shown, names.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  if (names.size() > count) text += fmt::format(" and {} more", names.size() - count);
  return text;
}

std::string day_of(TimePoint now) {
  return format_rfc3339(now).substr(0, 10);
}

}  // namespace kwatt::planner
