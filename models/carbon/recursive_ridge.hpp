#pragma once
// Linear regression of several outputs on the same inputs, learned one example at a time.
//
// Recursive least squares with exponential forgetting: after each example it is the minimum of
// sum over examples of forget^age × |y − Bᵀx|² + forget^count × ridge × |B − prior|².
// (Haykin, Adaptive Filter Theory, chapter "Recursive least-squares"). An example costs
// inputs × (inputs + outputs) operations, no matrix is inverted.
#include <cstddef>
#include <span>
#include <vector>

namespace kwatt::models::carbon {

class RecursiveRidge {
 public:
  // `ridge` > 0; 0 < `forget` <= 1. The prior is zero.
  RecursiveRidge(std::size_t inputs, std::size_t outputs, double ridge, double forget);
  // Before the first example: what the coefficient of `input` for `output` is unless taught else.
  void believe(std::size_t input, std::size_t output, double coefficient);
  void learn(std::span<const double> x, std::span<const double> y);
  void predict(std::span<const double> x, std::span<double> y) const;

 private:
  std::size_t inputs_, outputs_;
  double forget_;
  std::vector<double> inverse_;       // of the inputs' weighted correlation, inputs × inputs
  std::vector<double> coefficients_;  // inputs × outputs
  std::vector<double> gain_, error_;  // room for learn()
};

}  // namespace kwatt::models::carbon
