#include "planner/draw.hpp"

#include <algorithm>
#include <optional>

#include "planner/levers.hpp"
#include "planner/request.hpp"
#include "planner/requested_cpu.hpp"

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

bool by_agent(const NodeView& node) {
  return node.newest.meter.empty() || node.newest.meter == kAgentMeter;
}

// The measured power, if it is of this state. An agent does not speak for a machine that is off,
// whatever the clocks say.
const TelemetrySample* reading(const NodeView& node, TimePoint now) {
  const TelemetrySample* sample = believed_power(node, now);
  if (sample == nullptr || !of_this_state(node, node.newest.power_at.value_or(sample->at))) {
    return nullptr;
  }
  return node.power_state() == PowerState::Off && by_agent(node) ? nullptr : sample;
}

const TelemetrySample* fresh_load(const NodeView& node, TimePoint now) {
  const TelemetrySample* sample = believed_load(node, now);
  return sample != nullptr && of_this_state(node, sample->at) ? sample : nullptr;
}

const api::AgentReport* fresh_report(const NodeView& node, TimePoint now) {
  if (node.machine == nullptr || node.power_state() != PowerState::On) return nullptr;
  const api::AgentReport& report = node.machine->status.report;
  const bool fresh = report.watts > 0 && report.time && now - *report.time <= kReportFresh &&
                     of_this_state(node, *report.time);
  return fresh ? &report : nullptr;
}

// What its pods have asked for.
Permille requested_load(const NodeView& node) {
  const std::int64_t requested = requested_cpu(node).count();
  const std::int64_t all = std::max<std::int64_t>(1, node.node->allocatable.cpu.count());
  return Permille{std::min<std::int64_t>(1000, requested * 1000 / all)};
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

// Without a meter.
void estimate(const NodeView& node, const TelemetrySample* load, Draw& draw) {
  const auto modelled =
      node.model.specified ? api::PowerBasis::Specified : api::PowerBasis::Default;
  const PowerState state = node.power_state();
  if (state == PowerState::Off) {
    draw.power.actual = node.model.standby;
    if (node.model.standby > Milliwatts{0}) draw.basis = api::PowerBasis::Specified;
  } else if (state == PowerState::PoweringOn) {
    draw.power.actual = booting(node.model);
    draw.basis = modelled;
  } else {
    const Permille share = load != nullptr ? load->utilization : requested_load(node);
    if (node.learned != nullptr && load != nullptr) {
      models::MachineState now;
      now.utilization = load->utilization;
      now.busy = load->busy;
      const models::LearnedEstimate estimate = node.learned->at(now);
      if (estimate.in_range) {
        draw.power.actual = estimate.power;
        draw.basis = api::PowerBasis::Fitted;
        draw.error_permille = node.learned->error_permille();
        return;
      }
    }
    draw.power.actual =
        node.fit != nullptr ? node.fit->curve.at(share) : node.model.curve.at(share);
    draw.basis = node.fit != nullptr ? api::PowerBasis::Fitted : modelled;
    if (node.fit != nullptr) draw.error_permille = node.fit->error_permille;
  }
}

}  // namespace

Draw draw_of(const NodeView& node, TimePoint now) {
  const PowerState state = node.power_state();
  const TelemetrySample* load = fresh_load(node, now);
  Draw draw;
  bool whole_machine = true;
  if (const TelemetrySample* sample = reading(node, now)) {
    draw.power.actual = sample->power;
    draw.basis = api::PowerBasis::Measured;
    draw.meter = by_agent(node) ? kAgentMeter : node.newest.meter;
    draw.at = node.newest.power_at.value_or(sample->at);
    whole_machine = node.newest.whole_machine;
  } else if (const api::AgentReport* report = fresh_report(node, now)) {
    draw.power.actual = watts(report->watts);
    draw.basis = api::PowerBasis::Measured;
    draw.meter = kAgentMeter;
    draw.at = report->time;
    whole_machine = report->watts_source != "rapl";
  } else {
    estimate(node, load, draw);
  }

  const Milliwatts actual = draw.power.actual;
  const models::PowerCurve& curve = node.model.curve;
  const bool off_by_us = node.memory().powered_off_by_us;
  if (off_by_us && (state == PowerState::Off || state == PowerState::PoweringOn)) {
    draw.power.baseline = curve.idle();
  } else if (state == PowerState::On && load != nullptr && node.model.specified &&
             draw.measured() && whole_machine && held_back(node)) {
    draw.power.baseline = std::max(curve.at(load->utilization), actual);
  } else {
    draw.power.baseline = actual;
  }
  return draw;
}

}  // namespace kwatt::planner
