#include "models/carbon/intensity_series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kwatt::models::carbon {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr Duration kHour = std::chrono::hours{1};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace

std::string_view grams_problem(double grams_per_kwh) {
  if (!std::isfinite(grams_per_kwh)) return "it is not a number";
  if (grams_per_kwh < 0) return "it is negative";
  if (grams_per_kwh > kHighestGrams) {
    return "no electricity is dirtier than 5000 g/kWh (is it in grams per kWh?)";
  }
  return "";
}

IntensitySeries IntensitySeries::trimmed(TimePoint start, Duration step,
                                         std::vector<double> grams) {
  const auto known = [](double value) { return !std::isnan(value); };
  const auto first = std::find_if(grams.begin(), grams.end(), known);
  const auto last = std::find_if(grams.rbegin(), std::make_reverse_iterator(first), known).base();
  IntensitySeries out;
  out.start_ = start + step * (first - grams.begin());
  out.step_ = step;
  out.grams_.assign(first, last);
  out.gaps_ = out.size() -
              static_cast<std::size_t>(std::count_if(out.grams_.begin(), out.grams_.end(), known));
  return out;
}

Result<IntensitySeries> IntensitySeries::make(const std::vector<Reading>& readings, Duration step) {
  if (step <= Duration{0}) {
    return fail(ErrorCode::invalid_argument, "the step of a series must be positive");
  }
  std::vector<double> grams;
  const TimePoint start = readings.empty() ? TimePoint{} : readings.front().at;
  for (const Reading& reading : readings) {
    const auto wrong = [&](std::string_view why) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("carbon intensity {} at {}: {}", reading.grams_per_kwh,
                              format_rfc3339(reading.at), why));
    };
    if (const auto problem = grams_problem(reading.grams_per_kwh); !problem.empty()) {
      return wrong(problem);
    }
    const Duration since = reading.at - start;
    if (since % step != Duration{0}) {
      return wrong(fmt::format("the time is off the grid of one value every {} from {} on",
                               format_go_duration(step), format_rfc3339(start)));
    }
    const auto index = since / step;
    if (index < static_cast<std::int64_t>(grams.size())) {
      return wrong("the time is not after that of the value before");
    }
    if (index >= static_cast<std::int64_t>(kMostSteps)) {
      return wrong(fmt::format("more than {} steps after the first value", kMostSteps));
    }
    grams.resize(static_cast<std::size_t>(index), kGap);
    grams.push_back(reading.grams_per_kwh);
  }
  return trimmed(start, step, std::move(grams));
}

Duration IntensitySeries::age(TimePoint now) const {
  return empty() ? Duration::max() : std::max(Duration{0}, now - end());
}

std::optional<double> IntensitySeries::value(std::size_t index) const {
  if (index >= size() || std::isnan(grams_[index])) return std::nullopt;
  return grams_[index];
}

std::optional<double> IntensitySeries::at(TimePoint time) const {
  if (time < start_) return std::nullopt;
  return value(static_cast<std::size_t>((time - start_) / step_));
}

IntensitySeries IntensitySeries::until(TimePoint now) const {
  if (now <= start_) return trimmed(start_, step_, {});
  const auto ended = static_cast<std::size_t>((now - start_) / step_);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(ended, size()));
  return trimmed(start_, step_, std::vector<double>(grams_.begin(), grams_.begin() + kept));
}

IntensitySeries IntensitySeries::hourly() const {
  if (empty()) return {};
  const auto hour_of = [](TimePoint time) {
    return floor_div(time.time_since_epoch().count(), kHour.count());
  };
  const std::int64_t first = hour_of(start_), last = hour_of(end() - Duration{1});
  const auto hours = static_cast<std::size_t>(last - first + 1);
  // Each known step gives its mean for the milliseconds that it shares with an hour.
  std::vector<double> grams(hours, 0), known(hours, 0);
  for (std::size_t i = 0; i < size(); ++i) {
    if (std::isnan(grams_[i])) continue;
    TimePoint from = time_of(i);
    const TimePoint to = from + step_;
    while (from < to) {
      const std::int64_t hour = hour_of(from);
      const TimePoint next = std::min(to, TimePoint{kHour * (hour + 1)});
      const auto shared = static_cast<double>((next - from).count());
      grams[static_cast<std::size_t>(hour - first)] += grams_[i] * shared;
      known[static_cast<std::size_t>(hour - first)] += shared;
      from = next;
    }
  }
  for (std::size_t i = 0; i < hours; ++i) {
    grams[i] = 2 * known[i] >= static_cast<double>(kHour.count()) ? grams[i] / known[i] : kGap;
  }
  return trimmed(TimePoint{kHour * first}, kHour, std::move(grams));
}

}  // namespace kwatt::models::carbon
