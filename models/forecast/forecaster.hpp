#pragma once
// How much one workload will use in the next steps, from what it used: utilization of CPU or
// memory, in any unit that is not negative, at equal steps. Used where room is kept for growth: an
// expected value, and an upper one that is passed as rarely as asked for.
//
// Pluggable by name; every kind sees the past only. Deterministic, single-threaded. One object for
// each workload, of bounded size.
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kwatt::models::forecast {

class Forecaster {
 public:
  virtual ~Forecaster() = default;
  virtual std::string_view name() const = 0;
  // The next step's value: finite, not negative.
  virtual void observe(double value) = 0;
  // `lead` >= 1 steps after the newest. Never negative. 0 before the first observe().
  virtual double expected(std::size_t lead) const = 0;
};

struct ForecasterOptions {
  std::size_t season = 288;  // steps: a day of five minutes; 0: none is looked for
};
inline constexpr std::size_t kMostSeason = 100'000;  // steps

// As the last value.
std::unique_ptr<Forecaster> make_naive();
// As one season before; as the last value while less than a season is known.
std::unique_ptr<Forecaster> make_seasonal_naive(ForecasterOptions options);
// Along the median slope of the last hour's values (Theil-Sen: Sen, JASA 63(324), 1968), damped. A
// spike does not bend it.
std::unique_ptr<Forecaster> make_robust_trend();
// The three above, each weighed by the inverse square of its recent errors at the lead asked for.
std::unique_ptr<Forecaster> make_combined(ForecasterOptions options);

// naive, seasonal-naive, robust-trend, combined.
std::span<const std::string_view> forecaster_names();
inline constexpr std::string_view kDefaultForecaster = "combined";
// Errors: invalid_argument (no such name, with those there are; a season beyond kMostSeason).
Result<std::unique_ptr<Forecaster>> make_forecaster(std::string_view name,
                                                    ForecasterOptions options = {});

}  // namespace kwatt::models::forecast
