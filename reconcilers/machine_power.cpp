#include "reconcilers/machine_power.hpp"

#include <cstdlib>

#include "planner/draw.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr Duration kWattsInterval = std::chrono::minutes{5};
constexpr Duration kSourceInterval = std::chrono::minutes{1};

// The agent has several meters, and BMCs speak several protocols: which one is known from
// elsewhere.
std::string meter_name(const planner::NodeView& node, std::string_view meter) {
  if (node.machine != nullptr) {
    const std::string& by_agent = node.machine->status.report.watts_source;
    if (meter == planner::kAgentMeter && !by_agent.empty() && by_agent != "none") return by_agent;
    if (meter == planner::kBmcMeter) return bmc_protocol(*node.machine);
  }
  return std::string(meter);
}

}  // namespace

std::string bmc_protocol(const api::NodePower& machine) {
  const std::string& address = machine.spec.bmc.address;
  return address.substr(0, address.find_first_of("+:"));
}

api::MachinePower machine_power(const planner::NodeView& node, TimePoint now) {
  const planner::Draw draw = planner::draw_of(node, now);
  api::MachinePower power;
  power.milliwatts = draw.power.actual.count();
  power.source = draw.basis;
  if (draw.measured()) power.meter = meter_name(node, draw.meter);
  power.time = draw.at;
  power.error_percent = (draw.error_permille + 5) / 10;
  return power;
}

bool worth_showing(const api::MachinePower& shown, const api::MachinePower& now, Duration since) {
  if ((shown.milliwatts == 0) != (now.milliwatts == 0)) return true;
  const bool metered = now.source == api::PowerBasis::Measured;
  if (metered && shown.source != api::PowerBasis::Measured) return true;
  if (shown.source != now.source || shown.meter != now.meter) {
    // A machine that went off does not show for a minute what it drew before.
    const bool leap =
        now.milliwatts * 2 < shown.milliwatts || shown.milliwatts * 2 < now.milliwatts;
    return leap || since >= kSourceInterval;
  }
  return since >= kWattsInterval &&
         std::abs(now.milliwatts - shown.milliwatts) * 10 > shown.milliwatts;
}

}  // namespace kwatt::reconcilers
