#include "placement/strategies/carbon_wait.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::placement::strategies {
namespace {

constexpr double kWorthWaiting = 0.99;

class CarbonHold final : public Strategy {
 public:
  explicit CarbonHold(std::unique_ptr<Strategy> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }

  void decide(const Batch& batch, Cluster& cluster, Decision& out) override {
    wait_.begin(batch.forecasts, cluster);
    if (!wait_.known()) {
      // Held jobs are not in the inner strategy's last batch.
      Batch all = batch;
      if (std::exchange(held_last_, false)) all.seen = 0;
      inner_->decide(all, cluster, out);
      return;
    }
    jobs_.clear();
    positions_.clear();
    held_.clear();
    for (std::uint32_t i = 0; i < batch.jobs.size(); ++i) {
      if (const auto later = wait_.cleaner_start(batch.jobs[i], batch.now)) {
        held_.push_back({i, Waits::waits_for_carbon, later->start});
      } else {
        jobs_.push_back(batch.jobs[i]);
        positions_.push_back(i);
      }
    }
    held_last_ = true;
    inner_->decide({jobs_, batch.now, batch.forecasts, 0}, cluster, out);
    for (Assignment& one : out.assigned) one.job = positions_[one.job];
    for (Waiting& one : out.waiting) one.job = positions_[one.job];
    out.waiting.insert(out.waiting.end(), held_.begin(), held_.end());
    std::sort(out.waiting.begin(), out.waiting.end(),
              [](const Waiting& a, const Waiting& b) { return a.job < b.job; });
  }

 private:
  std::unique_ptr<Strategy> inner_;
  CarbonWait wait_;
  bool held_last_ = false;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> positions_;
  std::vector<Waiting> held_;
};

}  // namespace

Intensity::Intensity(const CarbonForecast& forecast)
    : start_(forecast.start), step_(forecast.step) {
  sums_.push_back(0);
  for (const double value : forecast.grams_per_kwh) sums_.push_back(sums_.back() + value);
}

double Intensity::position(TimePoint t) const {
  return static_cast<double>((t - start_).count()) / static_cast<double>(step_.count());
}

double Intensity::at(double x) const {
  const double last = static_cast<double>(sums_.size() - 2);
  return value(static_cast<std::size_t>(std::clamp(std::floor(x), 0.0, last)));
}

double Intensity::until(double x) const {
  const double n = static_cast<double>(sums_.size() - 1);
  if (x <= 0) return x * value(0);
  if (x >= n) return sums_.back() + (x - n) * value(sums_.size() - 2);
  const auto k = static_cast<std::size_t>(x);
  return sums_[k] + (x - static_cast<double>(k)) * value(k);
}

double Intensity::mean(TimePoint from, Duration run) const {
  if (run <= Duration{0}) return at(position(from));
  return (until(position(from + run)) - until(position(from))) /
         (position(from + run) - position(from));
}

void CarbonWait::begin(std::span<const CarbonForecast> forecasts, const Cluster& cluster) {
  zones_.clear();
  for (const CarbonForecast& forecast : forecasts) zones_.emplace_back(forecast);
  present_ = 0;
  if (zones_.empty()) return;
  for (NodeIndex i = 0; i < cluster.size(); ++i) {
    if (cluster.node(i).state != NodeState::unavailable) {
      present_ |= BitSet{1} << cluster.node(i).zone;
    }
  }
}

bool CarbonWait::known() const {
  return std::any_of(zones_.begin(), zones_.end(),
                     [](const Intensity& zone) { return zone.known(); });
}

std::optional<CarbonWait::Later> CarbonWait::cleaner_start(const Job& job, TimePoint now) const {
  if (job.expected <= Duration{0}) return std::nullopt;
  TimePoint latest = job.latest_start;
  if (job.deadline != TimePoint::max()) latest = std::min(latest, job.deadline - job.expected);
  if (latest == TimePoint::max() || latest <= now) return std::nullopt;
  double now_best = 0, best = 0;
  TimePoint when = now;
  bool any = false;
  for (std::size_t z = 0; z < zones_.size() && z < 64; ++z) {
    if ((job.zones & present_ & (BitSet{1} << z)) == 0 || !zones_[z].known()) continue;
    const Intensity& zone = zones_[z];
    const double at_once = zone.mean(now, job.expected);
    if (!any || at_once < now_best) now_best = at_once;
    if (!any || at_once < best) best = at_once, when = now;
    any = true;
    // The mean bends where the run begins or ends with a step of the forecast, so its least value
    // is at one of those moments, or at the last.
    const auto consider = [&](TimePoint t) {
      if (t <= now || t > latest) return;
      const double mean = zone.mean(t, job.expected);
      if (mean < best || (mean == best && t < when)) best = mean, when = t;
    };
    const Duration step = zone.step();
    const auto aligned = [&](TimePoint from) {
      const auto past = (from - zone.start()) % step;
      return from - past + (past > Duration{0} ? step : Duration{0});
    };
    const TimePoint horizon = std::min(latest, zone.end());
    for (TimePoint t = aligned(now); t <= horizon; t += step) consider(t);
    for (TimePoint t = aligned(now + job.expected) - job.expected; t <= horizon; t += step) {
      consider(t);
    }
    consider(horizon);
  }
  if (!any || best >= now_best * kWorthWaiting) return std::nullopt;
  return Later{when, best, now_best};
}

std::unique_ptr<Strategy> carbon_hold(std::unique_ptr<Strategy> inner) {
  if (inner->name() == "CarbonAware") return inner;
  return std::make_unique<CarbonHold>(std::move(inner));
}

}  // namespace kwatt::placement::strategies
