#pragma once
// Electrical power of one machine as a function of its load, and what switching it costs.
#include <array>

#include "api/node_power.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::models {

// 11 points at 0, 10, … 100 % load, linear between them (the shape of SPECpower_ssj2008 results).
struct PowerCurve {
  std::array<Milliwatts, 11> points{};
  // Load outside 0..1000 ‰ counts as the nearest end.
  Milliwatts at(Permille load) const;
  // The same without rounding the load to a permille, which on a large machine is more than a small
  // pod: `used` of `full`. A machine without CPUs is idle.
  Milliwatts at(Millicores used, Millicores full) const;
  Milliwatts idle() const { return points.front(); }
  Milliwatts maximum() const { return points.back(); }
  bool operator==(const PowerCurve&) const = default;
};

struct PowerModel {
  PowerCurve curve;
  Duration boot{0}, shutdown{0};
  Millijoules boot_energy, shutdown_energy;
  Milliwatts standby;      // while it is off
  bool specified = false;  // from NodePower.spec.model; false: the default curve
  bool operator==(const PowerModel&) const = default;
};

// The shape of a server of 2018-2022 (source: power_curve.cpp), full load being 1000.
PowerCurve server_shape();

// From the object's model: the curve, else a line from idle to max, else the default curve for a
// machine of this many logical CPUs (source: power_curve.cpp). Boot energy, where not given, is max
// power × boot time; shutdown energy is idle power × shutdown time. Times and standby
// power that are not given are 0.
PowerModel model_of(const api::PowerModelSpec& spec, Millicores cores);

}  // namespace kwatt::models
