#pragma once
// A model of one machine's power, learned from its own meter: a robust quadratic regression.
//
// power = b0 + Σ bi·xi + Σ bij·xi·xj over the inputs of MachineState that were measured, or without
// the products, whichever predicted held-out samples better. Coefficients minimize Huber's loss of
// the *relative* error (k = 1.345 σ, σ from the median absolute deviation) by iteratively
// reweighted least squares with a slight ridge (P. J. Huber, "Robust Estimation of a Location
// Parameter", 1964; Holland & Welsch, "Robust regression using iteratively reweighted least
// squares", 1977): a meter that now and then says nonsense does not bend the model.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "models/power_samples.hpp"

namespace kwatt::models {

struct LearnLimits {
  std::size_t samples = 40;       // at least
  Permille spread = percent(20);  // between the least and the highest utilization, at least
};

// How far a prediction may be trusted.
struct LearnedEstimate {
  Milliwatts power;  // never below 0
  // Every input lay in the range that was learned from. Outside, the nearest learned state's power
  // is given: it neither rises nor falls where nothing was measured.
  bool in_range = false;
};

// Immutable, copies are cheap. About 0.5 KB.
class LearnedPower {
 public:
  // At a state; inputs that the model was not taught are not looked at, and those that it was
  // taught but that are missing now are taken as they were on average.
  LearnedEstimate at(const MachineState& state) const;

  // Of samples that were held out in turn, five blocks by time: the mean relative error, and the
  // one that nine in ten stayed below.
  std::int64_t error_permille() const { return error_permille_; }
  std::int64_t bound_permille() const { return bound_permille_; }
  std::size_t samples() const { return samples_; }
  Permille lowest() const { return lowest_; }  // utilization that was learned from
  Permille highest() const { return highest_; }
  // "quadratic in utilization, busy, cpu temperature".
  std::string form() const;

 private:
  friend Result<LearnedPower> learn_power(const std::vector<PowerSample>&, LearnLimits);
  struct Fit;
  std::shared_ptr<const Fit> fit_;
  std::int64_t error_permille_ = 0, bound_permille_ = 0;
  std::size_t samples_ = 0;
  Permille lowest_, highest_;
};

// Inputs that not all samples have, or that never changed, are left out. Same samples, same model.
// Errors: unsupported, with what is missing (too few samples, all at about one utilization).
Result<LearnedPower> learn_power(const std::vector<PowerSample>& samples, LearnLimits limits = {});

}  // namespace kwatt::models
