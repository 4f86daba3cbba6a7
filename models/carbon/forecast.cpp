#include "models/carbon/forecast.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::models::carbon {
namespace {

constexpr Duration kHour = std::chrono::hours{1};
constexpr std::int64_t kForgotten = 2 * static_cast<std::int64_t>(kWeek);

std::int64_t hour_of(TimePoint time) {
  return std::chrono::floor<std::chrono::hours>(time).time_since_epoch().count();
}

std::string names() {
  std::string out;
  for (const std::string_view name : learner_names()) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

}  // namespace

std::string_view to_string(Missing missing) {
  switch (missing) {
    case Missing::none:
      return "Known";
    case Missing::no_data:
      return "NoData";
    case Missing::too_short:
      return "TooShort";
    case Missing::stale:
      return "Stale";
    case Missing::gaps:
      break;
  }
  return "Gaps";
}

std::optional<double> Forecast::mean(TimePoint from, Duration length) const {
  if (from < start || length <= Duration{0} || length > end() - from) return std::nullopt;
  const TimePoint to = from + length;
  double sum = 0;
  while (from < to) {
    const auto index = static_cast<std::size_t>((from - start) / kHour);
    const TimePoint next = std::min(to, start + kHour * static_cast<std::int64_t>(index + 1));
    sum += grams[index] * static_cast<double>((next - from).count());
    from = next;
  }
  return sum / static_cast<double>(length.count());
}

Result<IntensityForecaster> IntensityForecaster::make(std::string_view learner) {
  auto made = make_learner(learner);
  if (made == nullptr) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("no carbon forecast is called \"{}\"; there are: {}", learner, names()));
  }
  return IntensityForecaster(std::move(made));
}

void IntensityForecaster::append(std::int64_t hour, std::optional<double> grams) {
  if (past_.grams.empty()) past_.first = hour;
  double value = grams.value_or(0);
  if (!grams) {
    if (past_.size() >= learner_->needs()) {
      learner_->predict(past_, {&value, 1});
    } else {
      value = past_.grams.back();
    }
  }
  past_.grams.push_back(value);
  measured_.push_back(grams.has_value());
  learner_->learn(past_);
}

void IntensityForecaster::learn_hour(std::int64_t hours_since_1970, std::optional<double> grams) {
  // A gap is learned only when it is known that values go on behind it.
  if (!grams || (!past_.grams.empty() && hours_since_1970 < next_hour())) return;
  if (!past_.grams.empty() && hours_since_1970 - next_hour() > kForgotten) {
    past_ = {};
    measured_.clear();
    learner_ = make_learner(learner_->name());
  }
  while (!past_.grams.empty() && next_hour() < hours_since_1970) append(next_hour(), std::nullopt);
  append(hours_since_1970, grams);
}

void IntensityForecaster::learn(const IntensitySeries& series, TimePoint now) {
  const IntensitySeries hourly = series.until(now).hourly();
  for (std::size_t i = 0; i < hourly.size(); ++i) {
    if (hourly.time_of(i) + kHour > now) return;
    learn_hour(hour_of(hourly.time_of(i)), hourly.value(i));
  }
}

Forecast IntensityForecaster::forecast(TimePoint now, std::size_t hours,
                                       Duration stale_after) const {
  Forecast out;
  out.model = learner_->name();
  out.start = std::chrono::floor<std::chrono::hours>(now);
  const auto without = [&](Missing missing, std::string message) {
    out.missing = missing;
    out.message = std::move(message);
    return out;
  };
  if (past_.grams.empty() || hour_of(now) < past_.first) return out;
  const TimePoint known_until{kHour * next_hour()};
  if (out.start - known_until > stale_after) {
    return without(Missing::stale, fmt::format("the newest carbon intensity is of {}, {} ago",
                                               format_rfc3339(known_until - kHour),
                                               format_go_duration(now - known_until)));
  }
  if (past_.size() < std::max(kDay, learner_->needs())) {
    return without(Missing::too_short,
                   fmt::format("{} hours of carbon intensity are known, {} are needed",
                               past_.size(), std::max(kDay, learner_->needs())));
  }
  const auto known = std::count(measured_.end() - kDay, measured_.end(), true);
  if (2 * known < static_cast<std::ptrdiff_t>(kDay)) {
    return without(
        Missing::gaps,
        fmt::format("of the last 24 hours of carbon intensity only {} are known", known));
  }
  // From the newest value to the last hour asked for; what was measured already stands before it.
  const std::int64_t first = hour_of(now) - past_.first;
  const auto size = static_cast<std::int64_t>(past_.size());
  const auto wanted = static_cast<std::int64_t>(std::min(hours, kLongestHorizon));
  std::vector<double> said(
      static_cast<std::size_t>(std::max<std::int64_t>(0, first + wanted - size)));
  if (!said.empty()) learner_->predict(past_, said);
  for (std::int64_t hour = first; hour < first + wanted; ++hour) {
    out.grams.push_back(hour < size ? past_.grams[static_cast<std::size_t>(hour)]
                                    : said[static_cast<std::size_t>(hour - size)]);
  }
  out.measured = static_cast<std::size_t>(std::clamp<std::int64_t>(size - first, 0, wanted));
  out.missing = Missing::none;
  out.message.clear();
  return out;
}

Result<Forecast> predict_carbon(const IntensitySeries& series, TimePoint now, std::size_t hours,
                                std::string_view learner, Duration stale_after) {
  auto forecaster = IntensityForecaster::make(learner);
  if (!forecaster) return forecaster.error();
  forecaster->learn(series, now);
  return forecaster->forecast(now, hours, stale_after);
}

}  // namespace kwatt::models::carbon
