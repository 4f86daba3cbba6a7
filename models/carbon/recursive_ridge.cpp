#include "models/carbon/recursive_ridge.hpp"

#include <algorithm>

namespace kwatt::models::carbon {

RecursiveRidge::RecursiveRidge(std::size_t inputs, std::size_t outputs, double ridge, double forget)
    : inputs_(inputs),
      outputs_(outputs),
      forget_(forget),
      inverse_(inputs * inputs),
      coefficients_(inputs * outputs),
      gain_(inputs),
      error_(outputs) {
  for (std::size_t i = 0; i < inputs; ++i) inverse_[i * inputs + i] = 1 / ridge;
}

void RecursiveRidge::believe(std::size_t input, std::size_t output, double coefficient) {
  coefficients_[input * outputs_ + output] = coefficient;
}

void RecursiveRidge::learn(std::span<const double> x, std::span<const double> y) {
  // gain = inverse × x; the new example weighs 1, what was before `forget`. The inner loops run
  // along rows and add into a vector (the inverse is symmetric), which compilers make fast.
  std::fill(gain_.begin(), gain_.end(), 0.0);
  for (std::size_t j = 0; j < inputs_; ++j) {
    const double weight = x[j];
    if (weight == 0) continue;
    const double* const row = &inverse_[j * inputs_];
    for (std::size_t i = 0; i < inputs_; ++i) gain_[i] += row[i] * weight;
  }
  double spread = forget_;
  for (std::size_t i = 0; i < inputs_; ++i) spread += gain_[i] * x[i];

  predict(x, error_);
  for (std::size_t k = 0; k < outputs_; ++k) error_[k] = y[k] - error_[k];
  for (std::size_t i = 0; i < inputs_; ++i) {
    const double share = gain_[i] / spread;
    double* const coefficients = &coefficients_[i * outputs_];
    for (std::size_t k = 0; k < outputs_; ++k) coefficients[k] += share * error_[k];
    double* const row = &inverse_[i * inputs_];
    for (std::size_t j = 0; j < inputs_; ++j) row[j] = (row[j] - share * gain_[j]) / forget_;
  }
}

void RecursiveRidge::predict(std::span<const double> x, std::span<double> y) const {
  std::fill(y.begin(), y.end(), 0.0);
  for (std::size_t i = 0; i < inputs_; ++i) {
    const double value = x[i];
    if (value == 0) continue;
    const double* const coefficients = &coefficients_[i * outputs_];
    for (std::size_t k = 0; k < outputs_; ++k) y[k] += value * coefficients[k];
  }
}

}  // namespace kwatt::models::carbon
