#include "models/forecast/headroom.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kwatt::models::forecast {

Result<Headroom> Headroom::make(std::string_view forecaster, std::size_t lead, double quantile,
                                ForecasterOptions options) {
  if (lead < 1 || lead > kMostSeason) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a lead of {} steps is not within 1..{}", lead, kMostSeason));
  }
  if (!(quantile >= 0.5 && quantile <= 1)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a quantile of {} is not within 0.5..1", quantile));
  }
  auto made = make_forecaster(forecaster, options);
  if (!made) return made.error();
  return Headroom(std::move(*made), lead, quantile);
}

void Headroom::observe(double value) {
  const bool measured = std::isfinite(value) && value >= 0;
  if (!measured) {
    ++missing_;
    if (steps_ == 0) return;  // nothing is known yet that could stand for it
    value = forecaster_->expected(1);
  }
  double& said = said_[steps_ % said_.size()];
  if (steps_ >= said_.size() && measured) {
    if (errors_.size() < kErrors) {
      errors_.push_back(value - said);
    } else {
      errors_[due_ % kErrors] = value - said;
    }
    ++due_;
  }
  forecaster_->observe(value);
  said = forecaster_->expected(said_.size());
  ++steps_;
}

Prediction Headroom::predict() const {
  Prediction out;
  out.expected = forecaster_->expected(said_.size());
  out.errors = errors_.size();
  out.upper = out.expected;
  if (errors_.empty()) return out;
  // The smallest error that is not passed by more than 1 − quantile of all, counting the one to
  // come as one of them.
  std::vector<double> errors = errors_;
  const double rank = std::ceil(quantile_ * static_cast<double>(errors.size() + 1)) - 1;
  const auto index = std::min(errors.size() - 1, static_cast<std::size_t>(std::max(0.0, rank)));
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(index),
                   errors.end());
  out.upper += std::max(0.0, errors[index]);
  return out;
}

}  // namespace kwatt::models::forecast
