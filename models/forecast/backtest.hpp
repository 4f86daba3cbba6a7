#pragma once
// How well a forecast would have done: rolling origin, every step of a series is predicted from
// those before it.
#include <span>

#include "models/forecast/headroom.hpp"

namespace kwatt::models::forecast {

struct BacktestOptions {
  std::string_view forecaster = kDefaultForecaster;
  std::size_t lead = 1;      // steps
  double quantile = 0.95;    // of the upper value
  std::size_t warm_up = 24;  // steps that are not judged
  ForecasterOptions forecaster_options = {};
};

struct BacktestScore {
  std::size_t judged = 0;
  double absolute_error = 0;  // sums, so that scores of many workloads add up
  double error = 0;           // actual − expected
  double headroom = 0;        // upper − expected
  std::size_t covered = 0;    // actual <= upper

  BacktestScore& operator+=(const BacktestScore& other);
  double mae() const { return judged == 0 ? 0 : absolute_error / static_cast<double>(judged); }
  double bias() const { return judged == 0 ? 0 : error / static_cast<double>(judged); }
  double mean_headroom() const { return judged == 0 ? 0 : headroom / static_cast<double>(judged); }
  double coverage() const {
    return judged == 0 ? 0 : static_cast<double>(covered) / static_cast<double>(judged);
  }
};

// Errors: those of Headroom::make(); invalid_argument with the index of a value that is NaN,
// infinite or negative.
Result<BacktestScore> backtest(std::span<const double> series, const BacktestOptions& options);

}  // namespace kwatt::models::forecast
