// CarbonAware: when and where. A job with a deadline waits for the start at which the mean forecast
// intensity over its run is least, over all zones it may use (P. Wiesner et al., "Let's wait
// awhile", Middleware 2021: non-interruptible, mean over the run; zones as in A. Radovanović et
// al., "Carbon-aware computing for datacenters", IEEE TPS 38(2), 2023). Once it may start it goes
// to the node where it adds the fewest grams an hour: increase of power × the zone's intensity over
// the run.
//
// The forecast is an input. A job starts now when waiting promises less than a hundredth: forecasts
// are not that good, and room may be gone. Nothing waits without a forecast, a deadline or an
// expected duration; a boot is part of the run. Zones without a forecast count as the worst known.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "placement/strategies/all.hpp"
#include "placement/strategies/energy.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

constexpr double kWorthWaiting = 0.99;

// Means over any stretch of one zone's forecast in constant time.
class Intensity {
 public:
  explicit Intensity(const CarbonForecast& forecast)
      : start_(forecast.start), step_(forecast.step) {
    sums_.push_back(0);
    for (const double value : forecast.grams_per_kwh) sums_.push_back(sums_.back() + value);
  }
  bool known() const { return sums_.size() > 1 && step_ > Duration{0}; }
  Duration step() const { return step_; }
  TimePoint start() const { return start_; }
  // From here on every mean is the last value.
  TimePoint end() const { return start_ + step_ * static_cast<Duration::rep>(sums_.size() - 1); }

  double mean(TimePoint from, Duration run) const {
    if (run <= Duration{0}) return at(position(from));
    return (until(position(from + run)) - until(position(from))) /
           (position(from + run) - position(from));
  }

 private:
  double position(TimePoint t) const {  // in steps
    return static_cast<double>((t - start_).count()) / static_cast<double>(step_.count());
  }
  double value(std::size_t k) const { return sums_[k + 1] - sums_[k]; }
  double at(double x) const {
    const double last = static_cast<double>(sums_.size() - 2);
    return value(static_cast<std::size_t>(std::clamp(std::floor(x), 0.0, last)));
  }
  double until(double x) const {  // the integral from `start`; the ends go on as they are
    const double n = static_cast<double>(sums_.size() - 1);
    if (x <= 0) return x * value(0);
    if (x >= n) return sums_.back() + (x - n) * value(sums_.size() - 2);
    const auto k = static_cast<std::size_t>(x);
    return sums_[k] + (x - static_cast<double>(k)) * value(k);
  }

  TimePoint start_;
  Duration step_;
  std::vector<double> sums_;
};

class CarbonAware : public OneByOne {
 public:
  explicit CarbonAware(const Settings& settings)
      : OneByOne("CarbonAware"), boot_over_(settings.boot_over) {}

 protected:
  void begin(const Batch& batch, const Cluster& cluster) override {
    zones_.clear();
    means_for_ = nullptr;
    for (const CarbonForecast& forecast : batch.forecasts) zones_.emplace_back(forecast);
    present_ = 0;
    if (zones_.empty()) return;
    for (NodeIndex i = 0; i < cluster.size(); ++i) {
      if (cluster.node(i).state != NodeState::unavailable) {
        present_ |= BitSet{1} << cluster.node(i).zone;
      }
    }
  }

  bool holds(const Batch& batch) const override {
    return std::any_of(batch.forecasts.begin(), batch.forecasts.end(),
                       [](const CarbonForecast& f) { return !f.grams_per_kwh.empty(); });
  }

  std::optional<TimePoint> hold(const Job& job, const Batch& batch, const Cluster&) override {
    if (job.expected <= Duration{0}) return std::nullopt;
    TimePoint latest = job.latest_start;
    if (job.deadline != TimePoint::max()) latest = std::min(latest, job.deadline - job.expected);
    if (latest == TimePoint::max() || latest <= batch.now) return std::nullopt;
    double now_best = 0, best = 0;
    TimePoint when = batch.now;
    bool any = false;
    each_zone(job, [&](const Intensity& zone) {
      const double now = zone.mean(batch.now, job.expected);
      if (!any || now < now_best) now_best = now;
      if (!any || now < best) best = now, when = batch.now;
      any = true;
      // The mean bends where the run begins or ends with a step of the forecast, so its least value
      // is at one of those moments, or at the last.
      const auto consider = [&](TimePoint t) {
        if (t <= batch.now || t > latest) return;
        const double mean = zone.mean(t, job.expected);
        if (mean < best || (mean == best && t < when)) best = mean, when = t;
      };
      const Duration step = zone.step();
      const auto aligned = [&](TimePoint from) {
        const auto past = (from - zone.start()) % step;
        return from - past + (past > Duration{0} ? step : Duration{0});
      };
      const TimePoint horizon = std::min(latest, zone.end());
      for (TimePoint t = aligned(batch.now); t <= horizon; t += step) consider(t);
      for (TimePoint t = aligned(batch.now + job.expected) - job.expected; t <= horizon;
           t += step) {
        consider(t);
      }
      consider(horizon);
    });
    if (!any || best >= now_best * kWorthWaiting) return std::nullopt;
    return when;
  }

  std::optional<NodeIndex> best(const Job& job, const Batch& batch,
                                const Cluster& cluster) override {
    means(job, batch);
    return least(job, cluster, [&](NodeIndex i) {
      return increase(cluster, i, job.request.cpu.count(), boot_over_) *
             mean_[cluster.node(i).zone];
    });
  }

 private:
  template <class Visit>
  void each_zone(const Job& job, Visit&& visit) const {
    for (std::size_t z = 0; z < zones_.size() && z < 64; ++z) {
      if ((job.zones & present_ & (BitSet{1} << z)) != 0 && zones_[z].known()) visit(zones_[z]);
    }
  }

  // The members of a gang ask for the same.
  void means(const Job& job, const Batch& batch) {
    if (means_for_ == &job) return;
    means_for_ = &job;
    double worst = 0;
    for (const Intensity& zone : zones_) {
      if (zone.known()) worst = std::max(worst, zone.mean(batch.now, job.expected));
    }
    mean_.fill(worst > 0 ? worst : 1);
    for (std::size_t z = 0; z < zones_.size() && z < mean_.size(); ++z) {
      // A floor keeps power counting where electricity is free of carbon.
      if (zones_[z].known()) mean_[z] = std::max(1.0, zones_[z].mean(batch.now, job.expected));
    }
  }

  Duration boot_over_;
  std::vector<Intensity> zones_;
  BitSet present_ = 0;
  const Job* means_for_ = nullptr;
  std::array<double, 64> mean_{};
};

}  // namespace

std::unique_ptr<Strategy> make_carbon_aware(const Settings& settings) {
  return std::make_unique<CarbonAware>(settings);
}

}  // namespace kwatt::placement::strategies
