#include "planner/destinations.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/state_words.hpp"
#include "planner/filters/filters.hpp"
#include "planner/plan.hpp"

namespace kwatt::planner {
namespace {

// Operations that take pods away from the node; those that only change frequency or cap do not.
bool leaving(const api::Operation& operation) {
  return !operation.id.empty() && (operation.kind == api::OperationKind::PowerOff ||
                                   operation.kind == api::OperationKind::Migrate);
}

}  // namespace

Override override_of(const NodeView& node, TimePoint now) {
  const std::string* text = node.node->meta.annotations.find(names::kOverride);
  if (text == nullptr || text->empty()) return {};
  std::string_view rest = *text;
  std::string_view word = rest.substr(0, rest.find(','));
  Override result;
  if (word == "on") {
    result.kind = Override::Kind::on;
  } else if (word == "off") {
    result.kind = Override::Kind::off;
  } else {
    return {Override::Kind::not_understood, std::nullopt};
  }
  if (word.size() == rest.size()) return result;
  rest.remove_prefix(word.size() + 1);
  constexpr std::string_view kUntil = "until=";
  if (!rest.starts_with(kUntil)) return {Override::Kind::not_understood, std::nullopt};
  result.until = parse_rfc3339(rest.substr(kUntil.size()));
  if (!result.until) return {Override::Kind::not_understood, std::nullopt};
  return *result.until <= now ? Override{} : result;
}

std::string override_problem(std::string_view value) {
  return fmt::format("{}={} is not understood (on|off[,until=RFC 3339])", names::kOverride,
                     value.substr(0, 80));
}

Tier tier_of(const NodeView& node, TimePoint now) {
  if (node.power_state() != api::PowerState::On || !node.ready || node.node->unschedulable ||
      leaving(node.operation()) || node.node->meta.deletion_timestamp.has_value() ||
      override_of(node, now).kind == Override::Kind::off) {
    return Tier::none;
  }
  const api::StringMap& labels = node.node->meta.labels;
  const bool weak =
      labels.get(names::kLabelFrequency) == "low" || labels.get(names::kLabelCapped) == "true";
  return weak ? Tier::last_resort : Tier::normal;
}

bool counts_as_awake(const NodeView& node) {
  if (node.power_state() != api::PowerState::On || !node.ready || node.node->unschedulable ||
      (!node.operation().id.empty() && node.operation().kind == api::OperationKind::PowerOff)) {
    return false;
  }
  const auto& taints = node.node->taints;
  return !node.control_plane || std::none_of(taints.begin(), taints.end(), [](const auto& taint) {
    return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
  });
}

std::string why_no_destination(const NodeView& node, TimePoint now) {
  const NodeName& name = node.name();
  if (node.power_state() != api::PowerState::On) {
    return fmt::format("node {} is {}", name, phrase(node.power_state()));
  }
  if (!node.ready) return fmt::format("node {} is not ready", name);
  if (node.node->unschedulable) return fmt::format("node {} is cordoned", name);
  if (leaving(node.operation())) return fmt::format("node {} is being emptied", name);
  if (node.node->meta.deletion_timestamp) return fmt::format("node {} is being deleted", name);
  if (override_of(node, now).kind == Override::Kind::off) {
    return fmt::format("node {} is held off by its override annotation", name);
  }
  return fmt::format("node {} is taken out of this pass", name);
}

}  // namespace kwatt::planner
