#include "agent/sampler.hpp"

#include <algorithm>

#include "hardware/hwmon.hpp"
#include "hardware/thermal.hpp"

namespace kwatt::agent {
namespace {

// A sensor that is not there may appear with a module; looking for it costs a directory.
constexpr Duration kMeterSearch = std::chrono::minutes{1};
constexpr int kSmoothing = 10;
constexpr int kFirstOutside = 3;  // samples before the first value
constexpr Milliwatts kOutsideNoise = watts(3);
constexpr std::int64_t kOutsideNoiseShare = 20;  // 5 %

}  // namespace

std::optional<telemetry::AgentSample> Sampler::sample(const MachineState& known, TimePoint now,
                                                      MonotonicPoint monotonic) {
  errors_.clear();
  samples_ = std::min(samples_ + 1, kFirstOutside + 1);
  const Power power = measure_power(known, monotonic);
  auto times = hardware::read_cpu_times(proc_);
  if (!times) {
    errors_.push_back(times.error().with_context("utilization").text());
    cpu_.reset();
    return std::nullopt;
  }
  const auto before = std::exchange(cpu_, *times);
  const auto busy = before ? hardware::busy_between(*before, *times) : std::nullopt;
  if (!busy) return std::nullopt;

  const hardware::CpuSummary cpu = hardware::summarize(known.cpu);
  telemetry::AgentSample sample;
  sample.time = now;
  sample.cpu_busy = *busy;
  sample.frequency = hardware::average_frequency(sys_, known.cpu);
  sample.utilization = hardware::frequency_invariant(*busy, sample.frequency, cpu.hardware_max);
  sample.governor = cpu.governor;
  sample.power = power.watts;
  sample.source = power.source;
  sample.milli_celsius = read_temperature(monotonic);
  return sample;
}

// Energy counters tell power from their second reading on.
bool Sampler::measuring_outside() const {
  return !steady_outside_ && (samples_ <= kFirstOutside || outside_samples_ > 0);
}

std::optional<std::int64_t> Sampler::read_temperature(MonotonicPoint now) {
  if (!temperature_searched_ || now - *temperature_searched_ >= kMeterSearch) {
    temperature_searched_ = now;
    temperature_paths_ = hardware::find_cpu_temperatures(sys_);
  }
  return hardware::hottest(sys_, temperature_paths_);
}

Sampler::Power Sampler::measure_power(const MachineState& known, MonotonicPoint now) {
  hardware::EnergyMeter::Reading rapl;
  if (auto reading = energy_.sample(sys_, known.zones, now)) {
    rapl = *reading;
    // Counters that stand still (some virtual machines show such) measure nothing.
    if (rapl.packages == Milliwatts{0}) rapl.packages.reset();
    if (rapl.psys == Milliwatts{0}) rapl.psys.reset();
  } else {
    errors_.push_back(reading.error().text());
  }
  Power power;
  if (const auto metered = read_meter(now)) {
    power = {metered, telemetry::PowerSource::hwmon};
  } else if (rapl.psys) {
    power = {rapl.psys, telemetry::PowerSource::rapl_psys};
  } else if (rapl.packages) {
    power = {*rapl.packages + rapl.dram.value_or(Milliwatts{0}), telemetry::PowerSource::rapl};
  }
  if (rapl.packages && power.source != telemetry::PowerSource::rapl) {
    note_outside(*power.watts, *rapl.packages);
  }
  return power;
}

std::optional<Milliwatts> Sampler::read_meter(MonotonicPoint now) {
  if (!meter_path_ && (!meter_searched_ || now - *meter_searched_ >= kMeterSearch)) {
    meter_searched_ = now;
    auto found = hardware::find_power_meter(sys_);
    if (found) {
      meter_path_ = *found;
    } else {
      errors_.push_back(found.error().with_context("power meter").text());
    }
  }
  if (!meter_path_) return std::nullopt;
  auto reading = hardware::read_power_meter(sys_, *meter_path_);
  if (reading) return *reading;
  errors_.push_back(reading.error().with_context("power meter").text());
  meter_path_.reset();  // it may have moved; look again in a while
  return std::nullopt;
}

void Sampler::note_outside(Milliwatts machine, Milliwatts packages) {
  // The two sources do not measure the same instant, so single differences are noise.
  const Milliwatts outside{std::max<std::int64_t>(0, (machine - packages).count())};
  // The average of the first samples, then each new one counts a tenth.
  outside_samples_ = std::min(outside_samples_ + 1, kSmoothing);
  smoothed_outside_ = (smoothed_outside_ * (outside_samples_ - 1) + outside) / outside_samples_;
  if (outside_samples_ < kFirstOutside) return;
  const Milliwatts noise =
      std::max(kOutsideNoise, steady_outside_.value_or(Milliwatts{0}) / kOutsideNoiseShare);
  const bool moved = !steady_outside_ || smoothed_outside_ > *steady_outside_ + noise ||
                     smoothed_outside_ < *steady_outside_ - noise;
  if (moved) steady_outside_ = smoothed_outside_;
}

}  // namespace kwatt::agent
