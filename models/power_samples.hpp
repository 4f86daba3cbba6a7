#pragma once
// Which measurements of a machine are kept to learn from. Bounded, and varied rather than new: a
// machine that idles for days does not forget what it drew when it was busy, nor one that runs
// slowly what it drew at full frequency.
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "models/machine_state.hpp"

namespace kwatt::models {

struct PowerSample {
  StateInputs inputs{};
  float watts = 0;
  std::uint32_t sequence = 0;  // grows with time
};

class PowerSamples {
 public:
  static constexpr std::size_t kSpans = 20, kEach = 8;  // of the utilization: 0…49 ‰, 50…99 ‰, …

  // A measurement of the whole machine. Not taken: power that is no power, utilization outside
  // 0…1000 ‰, and moments at which the load was changing, because the load is an average over the
  // time since the last one and the power often is not: `steady` compares it with the measurement
  // before, which counts only if it is at most `kGap` old.
  // A full span gives up the sample that is most like the new one.
  void add(const MachineState& state, Milliwatts power, TimePoint at);

  std::vector<PowerSample> samples() const;  // oldest first
  std::size_t size() const { return samples_.size(); }
  std::uint32_t sequence() const { return sequence_; }  // of the newest; 0: none

  static constexpr Duration kGap = std::chrono::minutes{2};
  static bool steady(Permille before, Permille now);

 private:
  struct Last {
    TimePoint at{};
    Permille utilization;
  };
  std::vector<PowerSample> samples_;  // grouped by span
  std::array<std::uint8_t, kSpans> counts_{};
  std::optional<Last> last_;
  std::uint32_t sequence_ = 0;
};

}  // namespace kwatt::models
