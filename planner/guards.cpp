#include "planner/guards.hpp"

#include <fmt/format.h>

#include "planner/destinations.hpp"

namespace kwatt::planner {
namespace {

bool expected_unready(const NodeView& node) {
  if (node.memory().powered_off_by_us) return true;
  const api::Operation& operation = node.operation();
  return !operation.id.empty() && operation.kind == api::OperationKind::PowerOn;
}

}  // namespace

Health health_of(const Snapshot& snapshot, const std::vector<NodeName>& selected) {
  Health health;
  for (const NodeName& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    if (!found->second.ready && expected_unready(found->second)) continue;
    ++health.witnesses;
    if (!found->second.ready) ++health.unready;
  }
  return health;
}

Verdict too_many_unready(const Health& health) {
  return {Reason::TooManyUnready,
          fmt::format("{} of {} nodes are not Ready", health.unready, health.witnesses)};
}

bool disrupts(const api::Operation& operation) {
  return !operation.id.empty() && (operation.kind == api::OperationKind::PowerOff ||
                                   operation.kind == api::OperationKind::Migrate);
}

bool disrupts(const What& what) {
  return std::holds_alternative<PowerOff>(what) || std::holds_alternative<Migrate>(what);
}

AwakeFloor::AwakeFloor(const Snapshot& snapshot, const api::PowerOffSpec& spec,
                       const std::vector<NodeName>& selected)
    : spec_(spec) {
  for (const NodeName& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end() || !counts_as_awake(found->second)) continue;
    ++awake_;
    ++by_zone_[found->second.zone];
  }
}

std::optional<Verdict> AwakeFloor::refuse(const NodeView& node) const {
  if (!counts_as_awake(node)) return std::nullopt;
  if (awake_ - 1 < spec_.min_awake) {
    return Verdict{Reason::MinAwake,
                   fmt::format("{} awake nodes would be left, powerOff.minAwake is {}", awake_ - 1,
                               spec_.min_awake)};
  }
  const auto zone = by_zone_.find(node.zone);
  if (!node.zone.empty() && zone != by_zone_.end() && zone->second - 1 < spec_.min_awake_per_zone) {
    return Verdict{
        Reason::MinAwake,
        fmt::format("{} awake nodes would be left in zone {}, powerOff.minAwakePerZone is {}",
                    zone->second - 1, node.zone, spec_.min_awake_per_zone)};
  }
  return std::nullopt;
}

void AwakeFloor::remove(const NodeView& node) {
  if (!counts_as_awake(node)) return;
  --awake_;
  --by_zone_[node.zone];
}

}  // namespace kwatt::planner
