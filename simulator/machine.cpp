#include "simulator/machine.hpp"

#include <algorithm>

namespace kwatt::simulator {
namespace {

constexpr std::int64_t kStepMhz = 100;
constexpr std::int64_t kMicrojoulesPerMillijoule = 1000;
constexpr double kMicrojoulesPerKwh = 3.6e12;

// s(φ) of the header, all in permille.
std::int64_t frequency_scale(std::int64_t speed) {
  return (400 * speed + 600 * speed * speed / 1000 * speed / 1000) / 1000;
}

// What is held for `time` to spend `energy`; all of it at once where there is no time.
Milliwatts spread(Millijoules energy, Duration time) {
  return time.count() > 0 ? Milliwatts{energy.count() * 1000 / time.count()} : Milliwatts{0};
}

}  // namespace

std::string_view to_string(MachineState state) {
  switch (state) {
    case MachineState::off:
      return "Off";
    case MachineState::booting:
      return "Booting";
    case MachineState::on:
      return "On";
    case MachineState::stopping:
      return "Stopping";
  }
  return "";
}

Machine::Machine(const MachineSpec& spec) : spec_(&spec) {
  if (spec.starts_off) state_ = MachineState::off;
  update();
}

Amount Machine::free() const {
  Amount room = spec_->capacity;
  room -= used_;
  return room;
}

Permille Machine::busy() const {
  const std::int64_t full = spec_->capacity.cpu.count();
  if (full <= 0) return Permille{0};
  const std::int64_t wanted = jobs_busy_.count() + services_want_.count() * 1000 / speed_.count();
  return Permille{std::min<std::int64_t>(1000, wanted * 1000 / full)};
}

Permille Machine::utilization() const {
  return Permille{busy().count() * speed_.count() / 1000};
}

Milliwatts Machine::draw(Permille speed) const {
  const models::PowerCurve& curve = spec_->power.curve;
  const std::int64_t full = spec_->capacity.cpu.count();
  const std::int64_t wanted = jobs_busy_.count() + services_want_.count() * 1000 / speed.count();
  const Milliwatts at = curve.at(Millicores{std::min(full, wanted)}, spec_->capacity.cpu);
  if (speed == percent(100)) return at;
  return curve.idle() + (at - curve.idle()) * frequency_scale(speed.count()) / 1000;
}

void Machine::update() {
  const std::int64_t top = spec_->max_mhz;
  std::int64_t mhz = limit_mhz_ > 0 ? std::clamp(limit_mhz_, spec_->min_mhz, top) : top;
  const auto speed_at = [&](std::int64_t f) {
    return Permille{std::max<std::int64_t>(1, f * 1000 / top)};
  };
  if (cap_watts_ > 0 && state_ == MachineState::on) {
    while (mhz > spec_->min_mhz && draw(speed_at(mhz)) > watts(cap_watts_)) {
      mhz = std::max(spec_->min_mhz, mhz - kStepMhz);
    }
  }
  speed_ = speed_at(mhz);
  switch (state_) {
    case MachineState::off:
      power_ = spec_->power.standby;
      break;
    case MachineState::booting:
      power_ = spread(spec_->power.boot_energy, spec_->power.boot);
      break;
    case MachineState::stopping:
      power_ = spread(spec_->power.shutdown_energy, spec_->power.shutdown);
      break;
    case MachineState::on:
      power_ = draw(speed_);
      break;
  }
}

void Machine::settle(std::int64_t now_ms, double grams_per_kwh) {
  const std::int64_t elapsed = now_ms - settled_ms_;
  if (elapsed <= 0) return;
  settled_ms_ = now_ms;
  const std::int64_t microjoules = power_.count() * elapsed;
  account_.energy = models::carry(account_.energy, microjoules, kMicrojoulesPerMillijoule);
  account_.grams_co2 += static_cast<double>(microjoules) / kMicrojoulesPerKwh * grams_per_kwh;
  if (state_ == MachineState::booting || state_ == MachineState::stopping) {
    transition_uj_ += microjoules;
  }
  if (state_ != MachineState::on) return;
  account_.on_ms += elapsed;
  if (tasks_ > 0) account_.busy_ms += elapsed;
  const std::int64_t full = spec_->capacity.cpu.count();
  const std::int64_t services = services_want_.count() * 1000 / speed_.count();
  const std::int64_t wanted = jobs_busy_.count() + services;
  if (wanted > full) account_.overload_ms += elapsed;
  account_.cpu_ms += static_cast<double>(std::min(full, wanted)) * static_cast<double>(elapsed);
}

void Machine::reserve(const Amount& need) {
  used_ += need;
  ++tasks_;
  ++account_.tasks;
}

void Machine::release(const Amount& need) {
  used_ -= need;
  --tasks_;
}

void Machine::change_busy(Millicores jobs_by, Millicores services_by) {
  jobs_busy_ += jobs_by;
  services_want_ += services_by;
  update();
}

void Machine::begin_boot() {
  state_ = MachineState::booting;
  transition_uj_ = 0;
  ++account_.boots;
  update();
}

void Machine::end_boot() {
  // Power is in whole milliwatts; this is what the rounding has left.
  const std::int64_t rest = spec_->power.boot_energy.count() * 1000 - transition_uj_;
  account_.energy = models::carry(account_.energy, rest, kMicrojoulesPerMillijoule);
  state_ = MachineState::on;
  update();
}

void Machine::begin_shutdown() {
  state_ = MachineState::stopping;
  transition_uj_ = 0;
  ++account_.shutdowns;
  update();
}

void Machine::end_shutdown() {
  const std::int64_t rest = spec_->power.shutdown_energy.count() * 1000 - transition_uj_;
  account_.energy = models::carry(account_.energy, rest, kMicrojoulesPerMillijoule);
  state_ = MachineState::off;
  update();
}

void Machine::limit_frequency(std::int64_t mhz) {
  limit_mhz_ = mhz;
  update();
}

void Machine::cap(std::int64_t watts_) {
  cap_watts_ = watts_;
  update();
}

}  // namespace kwatt::simulator
