#include "models/forecast/backtest.hpp"

#include <cmath>

#include <fmt/format.h>

namespace kwatt::models::forecast {

BacktestScore& BacktestScore::operator+=(const BacktestScore& other) {
  judged += other.judged;
  absolute_error += other.absolute_error;
  error += other.error;
  headroom += other.headroom;
  covered += other.covered;
  return *this;
}

Result<BacktestScore> backtest(std::span<const double> series, const BacktestOptions& options) {
  auto headroom = Headroom::make(options.forecaster, options.lead, options.quantile,
                                 options.forecaster_options);
  if (!headroom) return headroom.error();
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!std::isfinite(series[i]) || series[i] < 0) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("value {} of the series is {}: a utilization is a number from 0 on",
                              i, series[i]));
    }
  }
  BacktestScore score;
  for (std::size_t i = 0; i + options.lead < series.size(); ++i) {
    headroom->observe(series[i]);
    if (i < options.warm_up) continue;
    const Prediction said = headroom->predict();
    const double came = series[i + options.lead];
    ++score.judged;
    score.absolute_error += std::abs(came - said.expected);
    score.error += came - said.expected;
    score.headroom += said.upper - said.expected;
    if (came <= said.upper) ++score.covered;
  }
  return score;
}

}  // namespace kwatt::models::forecast
