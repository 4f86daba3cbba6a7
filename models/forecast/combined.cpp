// Naive, seasonal naive and robust trend together. Their weights are of errors that have come due,
// at a short, a middle and a long lead; a lead takes the weights of the nearest below it.
#include <array>

#include "models/forecast/forecaster.hpp"

namespace kwatt::models::forecast {
namespace {

constexpr std::array<std::size_t, 3> kLeads{1, 6, 24};  // steps
constexpr double kForget = 0.95;                        // of errors, by the step
constexpr double kLeastError = 1e-12;  // squared, relative to nothing: only against 0 / 0

struct Member {
  std::unique_ptr<Forecaster> forecaster;
  // For each lead what was said, by step modulo the lead, and the discounted squares of its errors.
  std::array<std::vector<double>, kLeads.size()> said;
  std::array<double, kLeads.size()> error{};
};

class Combined final : public Forecaster {
 public:
  explicit Combined(ForecasterOptions options) {
    members_.push_back({make_naive(), {}, {}});
    members_.push_back({make_robust_trend(), {}, {}});
    if (options.season > 0) members_.push_back({make_seasonal_naive(options), {}, {}});
    for (Member& one : members_) {
      for (std::size_t i = 0; i < kLeads.size(); ++i) one.said[i].resize(kLeads[i]);
    }
  }
  std::string_view name() const override { return kDefaultForecaster; }
  void observe(double value) override {
    for (Member& one : members_) {
      one.forecaster->observe(value);
      for (std::size_t i = 0; i < kLeads.size(); ++i) {
        double& said = one.said[i][steps_ % kLeads[i]];
        if (steps_ >= kLeads[i]) {
          const double off = said - value;
          one.error[i] = one.error[i] * kForget + off * off;
        }
        said = one.forecaster->expected(kLeads[i]);
      }
    }
    ++steps_;
  }
  double expected(std::size_t lead) const override {
    std::size_t nearest = 0;
    while (nearest + 1 < kLeads.size() && kLeads[nearest + 1] <= lead) ++nearest;
    double sum = 0, weights = 0;
    for (const Member& one : members_) {
      const double error = one.error[nearest] + kLeastError;
      const double weight = 1 / (error * error);
      sum += weight * one.forecaster->expected(lead);
      weights += weight;
    }
    return sum / weights;
  }

 private:
  std::vector<Member> members_;
  std::size_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Forecaster> make_combined(ForecasterOptions options) {
  return std::make_unique<Combined>(options);
}

}  // namespace kwatt::models::forecast
