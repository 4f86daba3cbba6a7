#include "reconcilers/relay.hpp"

#include <algorithm>
#include <tuple>

namespace kwatt::reconcilers {
namespace {

constexpr Duration kAgentLives = std::chrono::minutes{15};  // it reports every five

}  // namespace

std::optional<std::string> choose_relay(const std::string& zone, std::vector<Relay> relays) {
  if (relays.empty()) return std::nullopt;
  const auto rank = [&](const Relay& relay) {
    return std::tuple(relay.attempt, relay.zone != zone, relay.notes, relay.node);
  };
  return std::min_element(relays.begin(), relays.end(),
                          [&](const Relay& a, const Relay& b) { return rank(a) < rank(b); })
      ->node;
}

bool can_relay(const api::Node& node, const api::NodePower* machine, TimePoint now) {
  const api::Condition* ready = api::find_condition(node.conditions, "Ready");
  if (ready == nullptr || ready->status != "True" || machine == nullptr) return false;
  const api::NodePowerStatus& status = machine->status;
  const bool awake =
      status.power_state == api::PowerState::On || status.power_state == api::PowerState::Unknown;
  const bool leaving = status.operation.kind == api::OperationKind::PowerOff;
  const auto& reported = status.report.time;
  return awake && !leaving && reported && now - *reported < kAgentLives;
}

}  // namespace kwatt::reconcilers
