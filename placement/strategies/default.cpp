// Default: what happens without a strategy. kube-scheduler keeps no order behind a pod that does
// not fit, and picks at random among nodes that it scores alike (pkg/scheduler/schedule_one.go,
// selectHost); here all nodes that fit are alike. The floor that every strategy must beat.
// DefaultRoundRobin: instead of the dice, the next node in the list that fits.
#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one multiplication chain, the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  // 0..sides-1; the bias of the remainder is below 2^-40 for any cluster.
  std::uint64_t roll(std::uint64_t sides) {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % sides;
  }

 private:
  std::uint64_t state_;
};

class Default : public OneByOne {
 public:
  Default(std::string_view name, const Settings& settings) : OneByOne(name), dice_(settings.seed) {}

 protected:
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    fitting_.clear();
    cluster.each_fitting(job.request, job.zones, job.gpu_models, [&](NodeIndex i) {
      fitting_.push_back(i);
      return true;
    });
    if (fitting_.empty()) return std::nullopt;
    return fitting_[dice_.roll(fitting_.size())];
  }

 private:
  Dice dice_;
  std::vector<NodeIndex> fitting_;
};

class DefaultRoundRobin : public OneByOne {
 public:
  explicit DefaultRoundRobin(std::string_view name) : OneByOne(name) {}

 protected:
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    return next_.take(job, cluster);
  }

 private:
  Round next_;
};

}  // namespace

std::unique_ptr<Strategy> make_default(const Settings& settings) {
  return std::make_unique<Default>("Default", settings);
}
std::unique_ptr<Strategy> make_default_round_robin(const Settings&) {
  return std::make_unique<DefaultRoundRobin>("DefaultRoundRobin");
}

}  // namespace kwatt::placement::strategies
