#include "reconcilers/bmc_meter.hpp"

#include <algorithm>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "planner/levers.hpp"
#include "reconcilers/bmc_calls.hpp"
#include "reconcilers/machine_power.hpp"
#include "telemetry/dropped.hpp"

namespace kwatt::reconcilers {
namespace {

using api::NodePower;
using planner::NodeView;

// A BMC that does not answer is asked for its reading at least this often, and one without a power
// limit for its limit (a firmware update may bring one).
constexpr Duration kLongestPause = std::chrono::minutes{30};
constexpr Duration kLimitPollWithout = std::chrono::minutes{10};

// Does anybody but the BMC measure what the whole machine draws, so that it need not be asked?
bool measured_otherwise(const NodeView& node, TimePoint now) {
  return planner::believed_power(node, now) != nullptr && node.newest.whole_machine &&
         node.newest.meter != planner::kBmcMeter;
}

}  // namespace

BmcMeter::BmcMeter(Drivers& drivers, telemetry::SampleStore& samples, MeterOptions options,
                   Metrics& metrics, const Clock& clock)
    : drivers_(drivers), samples_(samples), options_(options), metrics_(metrics), clock_(clock) {}

bool BmcMeter::of_use(const NodeView& node, const api::NodePowerStatus& status, TimePoint now) {
  return node.has_driver && status.power_state != api::PowerState::Off &&
         (!measured_otherwise(node, now) || status.bmc.power_limit);
}

void BmcMeter::forget(const std::string& machine) {
  due_.erase(machine);
}

kube::Task<bool> BmcMeter::read(std::shared_ptr<const NodePower> machine, const NodeView& node,
                                api::NodePowerStatus& status) {
  const std::string name = machine->meta.name;
  // A copy: the machine may be forgotten while its BMC thinks.
  Due due = due_[name];
  if (due.address != machine->spec.bmc.address) due = {.address = machine->spec.bmc.address};
  const MonotonicPoint now = clock_.monotonic();
  const bool reading = !measured_otherwise(node, clock_.now()) && now >= due.reading;
  if ((!reading && now < due.limit) || reading_ >= options_.at_once) co_return false;
  ++reading_;
  const struct Leave {
    std::size_t& count;
    ~Leave() { --count; }
  } leave{reading_};
  const auto driver = co_await drivers_.get(machine);
  if (!driver) {
    note(*machine, driver.error(), due);
    due.limit = due.reading;
    due_[name] = due;
    co_return false;
  }
  bool answers = true, taken = false;
  if (reading) {
    const auto power = co_await (*driver)->power_reading();
    answers = note(*machine, power ? Result<void>{} : Result<void>{power.error()}, due);
    if (!answers) due.limit = std::max(due.limit, due.reading);
    if (answers && *power) taken = keep(node, **power);
  }
  if (answers && clock_.monotonic() >= due.limit) {
    co_await read_limit(*driver, due, status.bmc);
  }
  due_[name] = due;
  co_return taken;
}

bool BmcMeter::keep(const NodeView& node, Milliwatts power) {
  telemetry::Sample sample;
  sample.at = clock_.now();
  sample.power = power;
  sample.source = telemetry::Source::bmc;
  sample.period = options_.interval;
  sample.has_utilization = false;
  const auto maximum =
      node.model.specified ? std::optional{node.model.curve.maximum()} : std::nullopt;
  const auto refusal = samples_.add(node.name(), sample, sample.at, maximum);
  if (refusal) telemetry::count_dropped(metrics_, *refusal);
  return !refusal;
}

kube::Task<void> BmcMeter::read_limit(std::shared_ptr<hardware::PowerDriver> driver, Due& due,
                                      api::BmcStatus& bmc) {
  const auto limit = co_await driver->power_limit();
  due.limit = clock_.monotonic() + options_.interval;
  if (limit) {
    planner::take_in(seen_of(*limit), bmc);
  } else if (limit.error().code == ErrorCode::unsupported) {
    bmc.power_limit = false;
    due.limit = clock_.monotonic() + kLimitPollWithout;
  }
}

bool BmcMeter::note(const NodePower& machine, const Result<void>& result, Due& due) {
  metrics_.add("kwatt_bmc_readings_total", "Readings asked of BMCs, by result.",
               {{"source", bmc_protocol(machine)}, {"result", result ? "ok" : "failed"}});
  due.failures = result ? 0 : due.failures + 1;
  Duration pause = options_.interval;
  if (!result) {
    pause = exponential(options_.interval, kLongestPause, due.failures);
    if (result.error().retry_after) pause = std::max(pause, *result.error().retry_after);
    if (result.error().code == ErrorCode::unauthorized) drivers_.forget(machine.meta.name);
    log::debug("BMC not read", {{"node", machine.meta.name}, {"error", result.error()}});
  }
  due.reading = clock_.monotonic() + pause;
  return result.has_value();
}

}  // namespace kwatt::reconcilers
