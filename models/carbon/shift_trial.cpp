#include "models/carbon/shift_trial.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::models::carbon {
namespace {

constexpr Duration kHour = std::chrono::hours{1};

}  // namespace

Result<ShiftScore> try_shifting(const IntensitySeries& series, const ShiftTrial& trial,
                                std::vector<ShiftedJob>* jobs) {
  auto forecaster = IntensityForecaster::make(trial.learner);
  if (!forecaster) return forecaster.error();
  const auto bad = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  if (trial.length <= Duration{0} || trial.length % kHour != Duration{0} ||
      trial.deadline < trial.length || trial.deadline % kHour != Duration{0}) {
    return bad("jobs of a trial take whole hours, and their deadline is not before their end");
  }
  const IntensitySeries hourly = series.hourly();
  const auto length = static_cast<std::size_t>(trial.length / kHour);
  const auto deadline = static_cast<std::size_t>(trial.deadline / kHour);
  const auto index_of = [&](TimePoint time) {
    const auto hours = std::chrono::ceil<std::chrono::hours>(time - hourly.start()).count();
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(hours, 0, static_cast<std::int64_t>(hourly.size())));
  };
  const std::size_t from = index_of(trial.from);
  const std::size_t room = hourly.size() < deadline ? 0 : hourly.size() - deadline + 1;
  const std::size_t to = std::min(index_of(trial.to), room);
  if (from >= to) return bad("no job of the trial ends within the series");

  // The mean of what a job would use that starts in each hour.
  std::vector<double> means(hourly.size());
  for (std::size_t i = from; i + length <= to - 1 + deadline; ++i) {
    for (std::size_t k = i; k < i + length; ++k) {
      const auto grams = hourly.value(k);
      if (!grams) {
        return bad(fmt::format("the series has a gap at {}, within the trial",
                               format_rfc3339(hourly.time_of(k))));
      }
      means[i] += *grams / static_cast<double>(length);
    }
  }
  std::vector<std::optional<std::size_t>> started(to - from);
  std::size_t known = 0;
  for (std::size_t hour = from; hour <= to - 1 + deadline - length; ++hour) {
    for (; known < hour; ++known) {
      forecaster->learn_hour(hourly.time_of(known).time_since_epoch() / kHour, hourly.value(known));
    }
    const TimePoint now = hourly.time_of(hour);
    const Forecast forecast = forecaster->forecast(now, deadline);
    // Jobs that have arrived and may still start.
    const std::size_t oldest =
        std::max(from, hour + length > deadline ? hour + length - deadline : 0);
    for (std::size_t job = oldest; job <= hour && job < to; ++job) {
      auto& start = started[job - from];
      if (start) continue;
      const ShiftableJob asked{now, trial.length, hourly.time_of(job + deadline)};
      const auto decision = choose_start(forecast, asked);
      if (!decision) return decision.error();
      if (decision->start_now || !trial.decide_again) start = index_of(decision->chosen.start);
    }
  }
  ShiftScore score;
  for (std::size_t job = from; job < to; ++job) {
    const std::size_t start = *started[job - from];  // the last hour leaves no choice
    ++score.jobs;
    score.at_once += means[job];
    score.chosen += means[start];
    score.oracle +=
        *std::min_element(means.begin() + static_cast<std::ptrdiff_t>(job),
                          means.begin() + static_cast<std::ptrdiff_t>(job + deadline - length + 1));
    score.mean_wait_hours += static_cast<double>(start - job);
    if (jobs != nullptr) jobs->push_back({hourly.time_of(job), hourly.time_of(start)});
  }
  const auto count = static_cast<double>(score.jobs);
  for (double* sum : {&score.at_once, &score.chosen, &score.oracle, &score.mean_wait_hours}) {
    *sum /= count;
  }
  return score;
}

}  // namespace kwatt::models::carbon
