// The median of all slopes between two of the last twelve values, and the median of what is left.
#include <algorithm>
#include <array>

#include "models/forecast/forecaster.hpp"

namespace kwatt::models::forecast {
namespace {

constexpr std::size_t kWindow = 12;
constexpr double kDamping = 0.8;  // of the slope, for each step ahead: in all at most four steps

double median(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

class RobustTrend final : public Forecaster {
 public:
  std::string_view name() const override { return "robust-trend"; }
  void observe(double value) override {
    if (count_ == kWindow) {
      std::copy(window_.begin() + 1, window_.end(), window_.begin());
      --count_;
    }
    window_[count_++] = value;
    fit();
  }
  double expected(std::size_t lead) const override {
    double steps = 0, damped = 1;
    for (std::size_t i = 0; i < lead && damped > 1e-3; ++i) steps += damped *= kDamping;
    return std::max(0.0, level_ + slope_ * steps);
  }

 private:
  void fit() {
    std::array<double, kWindow*(kWindow - 1) / 2> slopes{};
    std::size_t found = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t j = i + 1; j < count_; ++j) {
        slopes[found++] = (window_[j] - window_[i]) / static_cast<double>(j - i);
      }
    }
    slope_ = found == 0 ? 0 : median({slopes.data(), found});
    // Where the line stands at the newest value.
    std::array<double, kWindow> levels{};
    for (std::size_t i = 0; i < count_; ++i) {
      levels[i] = window_[i] + slope_ * static_cast<double>(count_ - 1 - i);
    }
    level_ = median({levels.data(), count_});
  }

  std::array<double, kWindow> window_{};  // oldest first
  std::size_t count_ = 0;
  double level_ = 0, slope_ = 0;
};

}  // namespace

std::unique_ptr<Forecaster> make_robust_trend() {
  return std::make_unique<RobustTrend>();
}

}  // namespace kwatt::models::forecast
