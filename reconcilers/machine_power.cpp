#include "reconcilers/machine_power.hpp"

#include "planner/draw.hpp"

namespace kwatt::reconcilers {
namespace {

// The agent has several meters, and BMCs speak several protocols: which one is known from
// elsewhere.
std::string meter_name(const planner::NodeView& node, std::string_view meter) {
  if (node.machine != nullptr) {
    const std::string& by_agent = node.machine->status.report.watts_source;
    if (meter == planner::kAgentMeter && !by_agent.empty() && by_agent != "none") return by_agent;
    // "redfish" of redfish+https://…
    const std::string& address = node.machine->spec.bmc.address;
    if (meter == planner::kBmcMeter) return address.substr(0, address.find_first_of("+:"));
  }
  return std::string(meter);
}

}  // namespace

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

}  // namespace kwatt::reconcilers
