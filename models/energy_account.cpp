#include "models/energy_account.hpp"

#include <algorithm>

namespace kwatt::models {

EnergyPair held(PowerPair power, Duration elapsed) {
  if (elapsed <= Duration{0}) return {};
  // 10^8 mW over ten years in milliseconds is 3·10^19 and would not fit; whole seconds first.
  const std::int64_t seconds = elapsed.count() / 1000, rest = elapsed.count() % 1000;
  const auto energy = [&](Milliwatts p) {
    return Millijoules{p.count() * seconds + p.count() * rest / 1000};
  };
  return {energy(power.actual), energy(power.baseline)};
}

Millijoules saved_over(PowerPair power, Duration elapsed, Duration longest) {
  if (elapsed > longest && power.saved() > Milliwatts{0}) return Millijoules{0};
  return held(power, std::min(elapsed, longest)).saved();
}

Whole carry(Whole before, std::int64_t more, std::int64_t per_unit) {
  const std::int64_t sum = before.rest + more;
  std::int64_t units = sum / per_unit, rest = sum % per_unit;
  if (rest < 0) {
    rest += per_unit;
    --units;
  }
  return {before.units + units, rest};
}

std::int64_t micrograms_co2(Millijoules energy, std::int64_t grams_per_kwh) {
  // 1 kWh is 3.6·10^9 mJ and so many grams 10^6 times as many micrograms.
  return energy.count() * grams_per_kwh / 3600;
}

}  // namespace kwatt::models
