// CarbonAware: when and where. A job with a deadline waits for the start at which the mean forecast
// intensity over its run is least, over all zones it may use (P. Wiesner et al., "Let's wait
// awhile", Middleware 2021: non-interruptible, mean over the run; zones as in A. Radovanović et
// al., "Carbon-aware computing for datacenters", IEEE TPS 38(2), 2023). Once it may start it goes
// to the node where it adds the fewest grams an hour: increase of power × the zone's intensity over
// the run.
//
// When it waits: carbon_wait.hpp. Zones without a forecast count as the worst known.
#include <algorithm>
#include <array>

#include "placement/strategies/all.hpp"
#include "placement/strategies/carbon_wait.hpp"
#include "placement/strategies/energy.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class CarbonAware : public OneByOne {
 public:
  explicit CarbonAware(const Settings& settings)
      : OneByOne("CarbonAware"), boot_over_(settings.boot_over) {}

 protected:
  void begin(const Batch& batch, const Cluster& cluster) override {
    wait_.begin(batch.forecasts, cluster);
    means_for_ = nullptr;
  }

  bool holds(const Batch&) const override { return wait_.known(); }

  std::optional<TimePoint> hold(const Job& job, const Batch& batch, const Cluster&) override {
    const auto later = wait_.cleaner_start(job, batch.now);
    return later ? std::optional{later->start} : std::nullopt;
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
  // The members of a gang ask for the same.
  void means(const Job& job, const Batch& batch) {
    if (means_for_ == &job) return;
    means_for_ = &job;
    double worst = 0;
    for (const Intensity& zone : wait_.zones()) {
      if (zone.known()) worst = std::max(worst, zone.mean(batch.now, job.expected));
    }
    mean_.fill(worst > 0 ? worst : 1);
    for (std::size_t z = 0; z < wait_.zones().size() && z < mean_.size(); ++z) {
      const Intensity& zone = wait_.zones()[z];
      // A floor keeps power counting where electricity is free of carbon.
      if (zone.known()) mean_[z] = std::max(1.0, zone.mean(batch.now, job.expected));
    }
  }

  Duration boot_over_;
  CarbonWait wait_;
  const Job* means_for_ = nullptr;
  std::array<double, 64> mean_{};
};

}  // namespace

std::unique_ptr<Strategy> make_carbon_aware(const Settings& settings) {
  return std::make_unique<CarbonAware>(settings);
}

}  // namespace kwatt::placement::strategies
