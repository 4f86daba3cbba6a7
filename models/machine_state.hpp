#pragma once
// What is known of a machine at one moment, as far as its power depends on it.
#include <array>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace kwatt::models {

struct MachineState {
  Permille utilization;  // frequency-invariant: cycles done ÷ cycles possible
  Permille busy;         // of the CPUs' time; above `utilization` on a machine that runs slowly
  // Of the whole machine; nullopt: not measured.
  std::optional<std::int64_t> instructions_per_second, cache_misses_per_second;
  std::optional<Millicelsius> ambient, cpu;
  bool operator==(const MachineState&) const = default;
};

// The same as numbers of about 0…2, in the order of the members; counters are bent
// (power_samples.cpp).
inline constexpr std::size_t kStateInputs = 6;
using StateInputs = std::array<float, kStateInputs>;  // NaN: not measured
StateInputs inputs_of(const MachineState& state);

}  // namespace kwatt::models
