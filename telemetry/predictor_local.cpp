// Predictors that ask nobody.
#include "telemetry/predictor.hpp"

namespace kwatt::telemetry {
namespace {

class LocalPredictor final : public Predictor {
 public:
  LocalPredictor(std::string name, LocalPower power)
      : name_(std::move(name)), power_(std::move(power)) {}

  const std::string& name() const override { return name_; }
  net::Task<Result<std::vector<Milliwatts>>> predict(std::vector<PredictionPoint> points) override {
    std::vector<Milliwatts> out;
    out.reserve(points.size());
    for (const PredictionPoint& point : points) {
      auto power = power_(point);
      if (!power) co_return power.error().with_context(name_);
      out.push_back(*power);
    }
    co_return out;
  }

 private:
  std::string name_;
  LocalPower power_;
};

}  // namespace

double PredictionPoint::cpu_usage() const {
  const auto all = static_cast<double>(logical_processors) * 1000;
  return all > 0 ? static_cast<double>((used + extra).count()) / all : 0;
}

std::unique_ptr<Predictor> make_local_predictor(std::string name, LocalPower power) {
  return std::make_unique<LocalPredictor>(std::move(name), std::move(power));
}

std::unique_ptr<Predictor> make_fake_predictor(FakePower power) {
  return make_local_predictor("Fake", [power](const PredictionPoint& point) -> Result<Milliwatts> {
    return power.base + Milliwatts{power.per_core.count() * point.extra.count() / 1000};
  });
}

}  // namespace kwatt::telemetry
