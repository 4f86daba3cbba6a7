#include "models/forecast/forecaster.hpp"

#include <array>

#include <fmt/format.h>

namespace kwatt::models::forecast {
namespace {

constexpr std::array<std::string_view, 4> kNames{"naive", "seasonal-naive", "robust-trend",
                                                 kDefaultForecaster};

}  // namespace

std::span<const std::string_view> forecaster_names() {
  return kNames;
}

Result<std::unique_ptr<Forecaster>> make_forecaster(std::string_view name,
                                                    ForecasterOptions options) {
  if (options.season > kMostSeason) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a season of {} steps is too long, at most {} are kept", options.season,
                            kMostSeason));
  }
  if (name == kNames[0]) return make_naive();
  if (name == kNames[1]) return make_seasonal_naive(options);
  if (name == kNames[2]) return make_robust_trend();
  if (name == kNames[3]) return make_combined(options);
  return fail(ErrorCode::invalid_argument,
              fmt::format("no utilization forecast is called \"{}\"; there are: {}", name,
                          fmt::join(kNames, ", ")));
}

}  // namespace kwatt::models::forecast
