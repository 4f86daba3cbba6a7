#pragma once
// How a zone's carbon intensity will go on, or why nobody can say. Values.
//
// The safe default: without a usable forecast nothing waits and nothing goes elsewhere, as if
// carbon did not exist. A forecast that cannot be used is therefore no error but a value with a
// reason, which callers show as the condition CarbonDataAvailable.
#include <memory>
#include <string>
#include <vector>

#include "models/carbon/intensity_series.hpp"
#include "models/carbon/learner.hpp"

namespace kwatt::models::carbon {

// Why there is no forecast. The words are those of the condition.
enum class Missing {
  none,       // there is one
  no_data,    // no value was ever read
  too_short,  // less than a day is known
  stale,      // the newest value is older than staleAfter
  gaps,       // of the last day less than half is known
};
// "Known", "NoData", "TooShort", "Stale", "Gaps".
std::string_view to_string(Missing missing);

struct Forecast {
  std::string model;
  TimePoint start;            // the whole hour that holds the time it was asked for
  std::vector<double> grams;  // per kWh, one for each hour; empty unless missing is none
  std::size_t measured = 0;   // so many of them, at the beginning, are measured already
  Missing missing = Missing::no_data;
  std::string message = "no carbon intensity has been read";  // a sentence

  bool usable() const { return missing == Missing::none; }
  TimePoint end() const {
    return start + std::chrono::hours{1} * static_cast<std::int64_t>(grams.size());
  }
  // The mean over [from, from + length), weighed by time; length > 0. nullopt: not inside.
  std::optional<double> mean(TimePoint from, Duration length) const;
};

inline constexpr std::size_t kLongestHorizon = 14 * kDay;  // hours
inline constexpr Duration kStaleAfter = std::chrono::hours{1};

// One zone, kept up to date: each hour is learned once. Not thread-safe.
class IntensityForecaster {
 public:
  // `learner` is one of learner_names(). Errors: invalid_argument, naming those there are.
  static Result<IntensityForecaster> make(std::string_view learner);

  // Learns the hours of `series` that had ended by `now` and lie behind those learned already. A
  // missing hour is learned as it was forecast, and counted as a gap; after two weeks without
  // values all is learned anew.
  void learn(const IntensitySeries& series, TimePoint now);
  // The same, one hour: nullopt is a gap. Hours not behind those learned already are ignored.
  void learn_hour(std::int64_t hours_since_1970, std::optional<double> grams);
  // Of the hours from that of `now` on; at most kLongestHorizon of them. The newest hour learned
  // may have ended `stale_after` before the hour of `now` began.
  Forecast forecast(TimePoint now, std::size_t hours, Duration stale_after = kStaleAfter) const;

 private:
  explicit IntensityForecaster(std::unique_ptr<Learner> learner) : learner_(std::move(learner)) {}
  std::int64_t next_hour() const { return past_.first + static_cast<std::int64_t>(past_.size()); }
  void append(std::int64_t hour, std::optional<double> grams);

  std::unique_ptr<Learner> learner_;
  Hours past_;
  std::vector<bool> measured_;  // beside past_.grams: false, it was a gap
};

// From all that `series` knows at `now`; what it holds of later times is not looked at. Learning a
// year takes about a tenth of a second: whoever asks every hour keeps an IntensityForecaster.
// Errors: invalid_argument (no such learner). All else is in the forecast.
Result<Forecast> predict_carbon(const IntensitySeries& series, TimePoint now, std::size_t hours,
                                std::string_view learner = kDefaultLearner,
                                Duration stale_after = kStaleAfter);

}  // namespace kwatt::models::carbon
