#pragma once
// Power held over time becomes energy, and energy becomes what people read: watt-hours and grams.
#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::models {

// What is drawn, and what would be drawn without us.
struct PowerPair {
  Milliwatts actual, baseline;
  Milliwatts saved() const { return baseline - actual; }
  bool operator==(const PowerPair&) const = default;
};

struct EnergyPair {
  Millijoules actual, baseline;
  Millijoules saved() const { return baseline - actual; }
  EnergyPair& operator+=(const EnergyPair& other) {
    actual += other.actual;
    baseline += other.baseline;
    return *this;
  }
  bool operator==(const EnergyPair&) const = default;
};

// `power` held for `elapsed`. Exact to a millijoule, rounded down; zero or negative time (a clock
// that was set back) is nothing.
EnergyPair held(PowerPair power, Duration elapsed);

// The saving of `power` held for `elapsed` by an observer who looks at least every `longest`. After
// a longer gap nobody knows what happened in it: nothing is claimed, and a cost (a negative saving,
// such as of a boot) is still counted for `longest`.
Millijoules saved_over(PowerPair power, Duration elapsed, Duration longest);

// A growing sum in whole units and a rest of 0 up to one unit, so that it survives in integers
// wherever it is stored. The whole may be negative: then more was spent than saved.
struct Whole {
  std::int64_t units = 0, rest = 0;
  bool operator==(const Whole&) const = default;
};
inline constexpr std::int64_t kMillijoulesPerWattHour = 3'600'000;
inline constexpr std::int64_t kMicrogramsPerGram = 1'000'000;

// units and rest after adding `more` rests.
Whole carry(Whole before, std::int64_t more, std::int64_t per_unit);

// Micrograms of CO2 that this energy stands for, at an intensity in grams per kilowatt-hour.
std::int64_t micrograms_co2(Millijoules energy, std::int64_t grams_per_kwh);

}  // namespace kwatt::models
