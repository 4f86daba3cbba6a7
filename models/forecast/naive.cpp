// As the last value, or as one season before.
#include "models/forecast/forecaster.hpp"

namespace kwatt::models::forecast {
namespace {

class Naive final : public Forecaster {
 public:
  std::string_view name() const override { return "naive"; }
  void observe(double value) override { last_ = value; }
  double expected(std::size_t) const override { return last_; }

 private:
  double last_ = 0;
};

class SeasonalNaive final : public Forecaster {
 public:
  explicit SeasonalNaive(std::size_t season) : season_(season) {}
  std::string_view name() const override { return "seasonal-naive"; }
  void observe(double value) override {
    last_ = value;
    if (season_ == 0) return;
    if (ring_.size() < season_) {
      ring_.push_back(value);
      return;
    }
    ring_[next_] = value;
    next_ = (next_ + 1) % season_;
  }
  double expected(std::size_t lead) const override {
    if (season_ == 0 || ring_.size() < season_) return last_;
    return ring_[(next_ + lead - 1) % season_];
  }

 private:
  std::size_t season_, next_ = 0;  // next_: the oldest of a full ring
  std::vector<double> ring_;
  double last_ = 0;
};

}  // namespace

std::unique_ptr<Forecaster> make_naive() {
  return std::make_unique<Naive>();
}

std::unique_ptr<Forecaster> make_seasonal_naive(ForecasterOptions options) {
  return std::make_unique<SeasonalNaive>(options.season);
}

}  // namespace kwatt::models::forecast
