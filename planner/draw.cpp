#include "planner/draw.hpp"

#include <algorithm>
#include <optional>

#include "planner/levers.hpp"
#include "planner/request.hpp"

namespace kwatt::planner {
namespace {

using api::PowerState;

// Agents write watts into their report at least this often (api.md), plus the way here.
constexpr Duration kReportFresh = std::chrono::minutes{6};

// A reading from before the last change of the power state tells nothing about this state.
bool of_this_state(const NodeView& node, TimePoint at) {
  return node.machine == nullptr || !node.machine->status.power_state_since ||
         at >= *node.machine->status.power_state_since;
}

const TelemetrySample* fresh_sample(const NodeView& node, TimePoint now) {
  if (node.samples.empty()) return nullptr;
  const TelemetrySample& newest = node.samples.back();
  return now - newest.at <= stale_after(node) && of_this_state(node, newest.at) ? &newest : nullptr;
}

Milliwatts booting(const models::PowerModel& model) {
  if (model.boot <= Duration{0}) return model.curve.maximum();
  const Milliwatts mean{model.boot_energy.count() * 1000 / model.boot.count()};
  return std::max(mean, model.curve.idle());
}

bool ours(const NodeView& node, const std::set<std::string>& keys) {
  const RequestNote note = request_on(*node.node);
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return note.keys.count(key) > 0 && node.node->meta.annotations.contains(key);
  });
}

// The machine runs slower or capped, as the agent or the BMC has confirmed, and we had asked for
// it.
bool held_back(const NodeView& node) {
  if (node.machine != nullptr) {
    const api::BmcStatus& bmc = node.machine->status.bmc;
    if (bmc.requested_cap_watts > 0 && bmc.effective_cap_watts > 0) return true;
  }
  const auto& labels = node.node->meta.labels;
  return (labels.get(names::kLabelFrequency) == "low" && ours(node, frequency_keys())) ||
         (labels.get(names::kLabelCapped) == "true" && ours(node, {std::string(names::kPowerCap)}));
}

}  // namespace

Draw draw_of(const NodeView& node, TimePoint now) {
  const PowerState state = node.power_state();
  const models::PowerCurve& curve = node.model.curve;
  const TelemetrySample* sample = fresh_sample(node, now);
  Draw draw;
  Milliwatts& actual = draw.power.actual;
  const api::AgentReport* report = node.machine != nullptr ? &node.machine->status.report : nullptr;
  if (sample != nullptr && sample->has_power) {
    actual = sample->power;
    draw.source = DrawSource::meter;
  } else if (state == PowerState::On && report != nullptr && report->watts > 0 && report->time &&
             now - *report->time <= kReportFresh && of_this_state(node, *report->time)) {
    actual = watts(report->watts);
    draw.source = DrawSource::report;
  } else if (state == PowerState::Off) {
    actual = node.model.standby;
  } else if (state == PowerState::PoweringOn) {
    actual = booting(node.model);
  } else {
    actual = curve.at(sample != nullptr ? sample->utilization : Permille{0});
  }

  const bool off_by_us = node.memory().powered_off_by_us;
  if (off_by_us && (state == PowerState::Off || state == PowerState::PoweringOn)) {
    draw.power.baseline = curve.idle();
  } else if (state == PowerState::On && sample != nullptr && node.model.specified &&
             held_back(node)) {
    draw.power.baseline = std::max(curve.at(sample->utilization), actual);
  } else {
    draw.power.baseline = actual;
  }
  return draw;
}

}  // namespace kwatt::planner
