// Means over the newest samples of a node.
#include <algorithm>
#include <array>

#include "planner/levers.hpp"

namespace kwatt::planner {
namespace {

// The usual gap between the newest samples: their median, so that a source which was away for an
// hour is not taken for one that sends once an hour.
constexpr std::size_t kGaps = 5;

Duration period_of(const NodeView& node) {
  const std::size_t n = node.samples.size();
  std::array<Duration, kGaps> gaps;
  std::size_t count = 0;
  for (std::size_t i = n; i >= 2 && count < kGaps; --i) {
    gaps[count++] = node.samples[i - 1].at - node.samples[i - 2].at;
  }
  if (count == 0) return Duration{0};
  std::sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count));
  return gaps[(count - 1) / 2];
}

enum class Quantity { utilization, power };

bool has(const TelemetrySample& sample, Quantity quantity) {
  return quantity == Quantity::power ? sample.has_power : sample.has_utilization;
}

// The newest sample with the quantity, if it may still be believed.
const TelemetrySample* believed(const NodeView& node, Quantity quantity, TimePoint now) {
  const auto& until =
      quantity == Quantity::power ? node.newest.power_until : node.newest.utilization_until;
  for (auto s = node.samples.rbegin(); s != node.samples.rend(); ++s) {
    if (!has(*s, quantity)) continue;
    return now <= until.value_or(s->at + stale_after(node)) ? &*s : nullptr;
  }
  return nullptr;
}

// Of what is believed; nullopt if the samples do not reach back to the start of the window.
std::optional<WindowMean> mean_of(const NodeView& node, Duration window, TimePoint now) {
  const auto& samples = node.samples;
  WindowMean sum;
  sum.has_utilization = believed(node, Quantity::utilization, now) != nullptr;
  sum.has_power = believed(node, Quantity::power, now) != nullptr;
  if (!sum.has_utilization && !sum.has_power) return std::nullopt;
  // A window is covered if the samples reach back to its start, give or take one period.
  const TimePoint start = samples.back().at - window;
  const Quantity wanted = sum.has_utilization ? Quantity::utilization : Quantity::power;
  const auto first = std::find_if(samples.begin(), samples.end(),
                                  [&](const TelemetrySample& s) { return has(s, wanted); });
  if (first->at > start + period_of(node)) return std::nullopt;
  std::int64_t loaded = 0, metered = 0;
  for (auto s = samples.rbegin(); s != samples.rend(); ++s) {
    const bool enough = (loaded > 0 || !sum.has_utilization) && (metered > 0 || !sum.has_power);
    if (s->at <= start && enough) break;
    if (s->has_utilization && sum.has_utilization && (s->at > start || loaded == 0)) {
      ++loaded;
      sum.utilization += s->utilization;
      sum.busy += s->busy;
    }
    if (s->has_power && sum.has_power && (s->at > start || metered == 0)) {
      ++metered;
      sum.power += s->power;
    }
  }
  if (loaded > 0) {
    sum.utilization = sum.utilization / loaded;
    sum.busy = sum.busy / loaded;
  }
  if (metered > 0) sum.power = sum.power / metered;
  return sum;
}

}  // namespace

Duration stale_after(const NodeView& node) {
  return std::max<Duration>(std::chrono::seconds{30}, 3 * period_of(node));
}

const TelemetrySample* believed_load(const NodeView& node, TimePoint now) {
  return believed(node, Quantity::utilization, now);
}

const TelemetrySample* believed_power(const NodeView& node, TimePoint now) {
  return believed(node, Quantity::power, now);
}

bool samples_believed(const NodeView& node, TimePoint now) {
  const bool loads = std::any_of(node.samples.begin(), node.samples.end(),
                                 [](const TelemetrySample& s) { return s.has_utilization; });
  return (loads ? believed_load(node, now) : believed_power(node, now)) != nullptr;
}

std::optional<WindowMean> window_mean(const NodeView& node, Duration window, TimePoint now) {
  auto mean = mean_of(node, window, now);
  return mean && mean->has_utilization ? mean : std::nullopt;
}

std::optional<WindowMean> power_window_mean(const NodeView& node, Duration window, TimePoint now) {
  auto mean = mean_of(node, window, now);
  return mean && mean->has_power ? mean : std::nullopt;
}

}  // namespace kwatt::planner
