#pragma once
// The expected use of a workload together with an upper one: expected plus the quantile of its own
// latest errors at that lead. No distribution is assumed.
#include "models/forecast/forecaster.hpp"

namespace kwatt::models::forecast {

struct Prediction {
  double expected = 0;
  double upper = 0;        // not below expected
  std::size_t errors = 0;  // so many came due; few: `upper` says little yet
};

class Headroom {
 public:
  static constexpr std::size_t kErrors = 96;  // kept: eight hours of five minutes

  // `lead` >= 1 steps ahead; upper is not passed in `quantile` of all cases, within 0.5..1.
  // Errors: those of make_forecaster(); invalid_argument (lead or quantile).
  static Result<Headroom> make(std::string_view forecaster, std::size_t lead, double quantile,
                               ForecasterOptions options = {});

  // The next step. NaN: it was not measured, and what was expected stands for it; an infinity or
  // a negative value counts as not measured, too.
  void observe(double value);
  Prediction predict() const;
  std::size_t missing() const { return missing_; }

 private:
  Headroom(std::unique_ptr<Forecaster> forecaster, std::size_t lead, double quantile)
      : forecaster_(std::move(forecaster)), said_(lead), quantile_(quantile) {}

  std::unique_ptr<Forecaster> forecaster_;
  std::vector<double> said_;    // by step modulo the lead
  std::vector<double> errors_;  // actual − said, a ring
  double quantile_;
  std::size_t steps_ = 0, due_ = 0, missing_ = 0;
};

}  // namespace kwatt::models::forecast
