// Release: Restore. Everything that is recorded as ours leaves the node in one patch; what people
// set by hand stays. A machine that is off is woken before, by a PowerOn (see begin()).
#include "planner/steps_common.hpp"

namespace kwatt::planner::steps {
namespace {

PatchNode restore_patch(const Context& context) {
  const api::Node& node = context.node();
  const bool cordon_is_ours =
      context.operation().cordoned_by_us || context.status.memory.cordoned_by_us;
  PatchNode patch = clean_patch(context, cordon_is_ours);
  for (const std::string& key : request_on(node).keys) {
    if (setting_keys().count(key) > 0 && node.meta.annotations.contains(key)) {
      patch.remove_annotations.push_back(key);
    }
  }
  if (node.meta.annotations.contains(names::kRequest)) {
    patch.remove_annotations.emplace_back(names::kRequest);
  }
  for (const std::string_view label : {names::kLabelFrequency, names::kLabelCapped}) {
    if (node.meta.labels.contains(label)) patch.remove_labels.emplace_back(label);
  }
  return patch;
}

}  // namespace

Step release_step(const Context& context) {
  const PatchNode patch = restore_patch(context);
  if (!patch.empty()) return stay(context, kLook, {patch});
  if (auto step = restore_limit(context)) return *step;
  api::NodePowerStatus next = context.status;
  next.memory.cordoned_by_us = false;
  next.memory.powered_off_by_us = false;
  next.memory.owner_policy.clear();
  const Reason reason =
      api::parse_reason(context.operation().reason).value_or(Reason::PolicyDeleted);
  return finish(std::move(next), *context.seen.node, reason, "everything of ours was given back");
}

}  // namespace kwatt::planner::steps
