// EnergyAware: jobs in the order of arrival, each on the node whose power it increases least, by
// the node's own curve; a node that must be woken is charged its idle power and its boot. With
// linear curves this is the power-aware best fit of A. Beloglazov, J. Abawajy, R. Buyya,
// "Energy-aware resource allocation heuristics for efficient management of data centers for Cloud
// computing", FGCS 28(5), 2012; what it adds is the curve between idle and full, and that waking
// costs.
#include <limits>

#include "placement/strategies/all.hpp"
#include "placement/strategies/energy.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class EnergyAware : public OneByOne {
 public:
  explicit EnergyAware(const Settings& settings)
      : OneByOne("EnergyAware"), boot_over_(settings.boot_over) {}

 protected:
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    // A nanowatt is no difference: of nodes that cost the same the first one is taken, however the
    // last digits were rounded.
    constexpr double kSame = 1e-6;
    const std::int64_t cpu = job.request.cpu.count();
    std::optional<NodeIndex> best;
    double below = std::numeric_limits<double>::infinity();  // what a better one costs at most
    cluster.each_fitting(
        job.request, job.zones, job.gpu_models,
        [&](NodeIndex i) {
          const double value = increase(cluster, i, cpu, boot_over_);
          if (value < below) best = i, below = value - kSame;
          return true;
        },
        0, [&](NodeIndex i) { return cluster.increase_at_least(i, cpu) < below; });
    return best;
  }

 private:
  Duration boot_over_;
};

}  // namespace

std::unique_ptr<Strategy> make_energy_aware(const Settings& settings) {
  return std::make_unique<EnergyAware>(settings);
}

}  // namespace kwatt::placement::strategies
