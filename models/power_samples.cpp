#include "models/power_samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kwatt::models {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
// Both absolute and relative, so that neither an idle nor a busy machine is called restless.
constexpr std::int64_t kLeastChange = 10;    // ‰
constexpr std::int64_t kShareOfChange = 10;  // one part in so many

// Watts follow work done almost in proportion, and misses hardly at all once there are many.
float work(const std::optional<std::int64_t>& value) {
  if (!value || *value < 0) return kUnknown;
  return static_cast<float>(std::sqrt(static_cast<double>(*value)) / 1e5);
}
float misses(const std::optional<std::int64_t>& value) {
  if (!value || *value < 0) return kUnknown;
  return static_cast<float>(std::log10(1 + static_cast<double>(*value)) / 3);
}
float temperature(const std::optional<Millicelsius>& value) {
  return value ? static_cast<float>(value->count()) / 100'000.F : kUnknown;
}

// Squared; an input that only one of the two has makes them as different as inputs can be.
float distance(const StateInputs& a, const StateInputs& b) {
  float sum = 0;
  for (std::size_t i = 0; i < kStateInputs; ++i) {
    const bool known_a = !std::isnan(a[i]), known_b = !std::isnan(b[i]);
    if (known_a != known_b) sum += 1;
    if (known_a && known_b) sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

}  // namespace

StateInputs inputs_of(const MachineState& state) {
  return {static_cast<float>(state.utilization.count()) / 1000.F,
          static_cast<float>(state.busy.count()) / 1000.F,
          work(state.instructions_per_second),
          misses(state.cache_misses_per_second),
          temperature(state.ambient),
          temperature(state.cpu)};
}

bool PowerSamples::steady(Permille before, Permille now) {
  const std::int64_t change = std::abs((now - before).count());
  return change <= kLeastChange + std::max(before, now).count() / kShareOfChange;
}

void PowerSamples::add(const MachineState& state, Milliwatts power, TimePoint at) {
  const std::int64_t load = state.utilization.count();
  if (load < 0 || load > 1000 || power <= Milliwatts{0}) return;
  if (last_ && at <= last_->at) return;
  const bool follows = last_ && at - last_->at <= kGap;
  const bool taken = follows && steady(last_->utilization, state.utilization);
  last_ = {at, state.utilization};
  if (!taken) return;

  const PowerSample sample{inputs_of(state), static_cast<float>(power.count()) / 1000.F,
                           ++sequence_};
  const auto span = std::min<std::size_t>(kSpans - 1, static_cast<std::size_t>(load / 50));
  const auto begin =
      samples_.begin() + std::accumulate(counts_.begin(),
                                         counts_.begin() + static_cast<std::ptrdiff_t>(span),
                                         std::ptrdiff_t{0});
  const auto end = begin + counts_[span];
  if (counts_[span] < kEach) {
    samples_.insert(end, sample);
    ++counts_[span];
    return;
  }
  *std::min_element(begin, end, [&](const PowerSample& a, const PowerSample& b) {
    return distance(a.inputs, sample.inputs) < distance(b.inputs, sample.inputs);
  }) = sample;
}

std::vector<PowerSample> PowerSamples::samples() const {
  std::vector<PowerSample> out = samples_;
  std::sort(out.begin(), out.end(),
            [](const PowerSample& a, const PowerSample& b) { return a.sequence < b.sequence; });
  return out;
}

}  // namespace kwatt::models
