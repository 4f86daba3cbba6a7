#pragma once
// When a job should start so that its electricity is cleanest: the start within its deadline (and
// before latest_start) at which the mean forecast intensity over its run is least, over all zones
// it may use. For CarbonAware, and for any other strategy behind carbon_hold().
//
// The forecast is an input. A job starts now when waiting promises less than a hundredth: forecasts
// are not that good, and room may be gone. Nothing waits without a forecast, a limit in time or an
// expected duration; a boot is part of the run.
#include <memory>
#include <optional>
#include <vector>

#include "placement/strategies/strategy.hpp"

namespace kwatt::placement::strategies {

// Means over any stretch of one zone's forecast in constant time. Before the first value the first
// counts, after the last the last.
class Intensity {
 public:
  explicit Intensity(const CarbonForecast& forecast);
  bool known() const { return sums_.size() > 1 && step_ > Duration{0}; }
  Duration step() const { return step_; }
  TimePoint start() const { return start_; }
  TimePoint end() const { return start_ + step_ * static_cast<Duration::rep>(sums_.size() - 1); }
  // gCO2eq/kWh; of the moment if `run` is not positive. known() only.
  double mean(TimePoint from, Duration run) const;

 private:
  double position(TimePoint t) const;  // in steps
  double value(std::size_t k) const { return sums_[k + 1] - sums_[k]; }
  double at(double x) const;
  double until(double x) const;  // the integral from `start`

  TimePoint start_;
  Duration step_;
  std::vector<double> sums_;
};

class CarbonWait {
 public:
  // For one decision; copies what it needs.
  void begin(std::span<const CarbonForecast> forecasts, const Cluster& cluster);
  bool known() const;  // there is a forecast of any zone
  const std::vector<Intensity>& zones() const { return zones_; }

  struct Later {
    TimePoint start;
    double grams_then = 0, grams_now = 0;  // mean intensity over the run
  };
  // nullopt: it should start now.
  std::optional<Later> cleaner_start(const Job& job, TimePoint now) const;

 private:
  std::vector<Intensity> zones_;
  BitSet present_ = 0;  // zones with a node that is not unavailable
};

// `inner`, with jobs that should start later held back before it sees them. CarbonAware is returned
// as it is: it waits by itself.
std::unique_ptr<Strategy> carbon_hold(std::unique_ptr<Strategy> inner);

}  // namespace kwatt::placement::strategies
