#pragma once
// What a machine's own meter has taught about its power, for the time when the meter is silent.
#include <array>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "models/power_curve.hpp"

namespace kwatt::models {

// One moment at which load and power of the whole machine were both measured.
struct LoadPoint {
  Permille load;
  Milliwatts power;
};

// The newest points of each span of load, so that a machine that idles for days does not forget
// what it drew when it was busy. Bounded: 252 points.
class LoadHistory {
 public:
  static constexpr std::size_t kSpans = 21, kEach = 12;  // 0…49, 50…99, … 1000 ‰
  // Points outside 0..1000 ‰ or without power say nothing and are not taken.
  void add(LoadPoint point);
  std::vector<LoadPoint> points() const;  // by span, then oldest first
  std::size_t size() const;

 private:
  struct Stored {
    std::int32_t milliwatts = 0;  // two million watts
    std::int16_t load = 0;
  };
  struct Span {
    std::array<Stored, kEach> ring{};
    std::uint8_t next = 0, count = 0;
  };
  std::array<Span, kSpans> spans_{};
};

struct FitLimits {
  std::size_t points = 30;        // at least
  Permille spread = percent(20);  // between the least and the highest load, at least
};

struct PowerFit {
  PowerCurve curve;                 // never falls with the load
  std::int64_t error_permille = 0;  // mean absolute error over the points, relative to each
  std::size_t points = 0;
  Permille lowest, highest;  // load between which it was measured; beyond, it is extended
  bool operator==(const PowerFit&) const = default;
};

// Least squares of power = idle + gain × shape(load), once for a straight line and once for the
// shape of servers behind the default curve (models/power_curve.cpp); the one with the smaller
// error is taken. Same points, same fit.
// Errors: unsupported, with what is missing (too few points, all at about one load, or power that
// falls with load, which no shape can say).
Result<PowerFit> fit_power(const std::vector<LoadPoint>& points, FitLimits limits = {});

}  // namespace kwatt::models
