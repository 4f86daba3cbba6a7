// MinMin and MaxMin: of all waiting jobs, the one whose earliest possible completion is the least
// (MinMin: short jobs first, good for the mean) or the greatest (MaxMin: long jobs first, good for
// the makespan) goes to the node on which it completes first; then again. O. Ibarra, C. Kim,
// "Heuristic algorithms for scheduling independent tasks on nonidentical processors", JACM 24(2),
// 1977; as compared by T. Braun et al., JPDC 61(6), 2001.
//
// Nodes here run several jobs at once at their own speed, so completion is when the node is ready
// (now, or after its boot) plus the expected duration, and of nodes equally early the one with the
// greatest free share of CPU is taken. With that, a job's earliest completion does not depend on
// where others of the batch went but for the ready times of nodes that fill up, and the repeated
// search of the papers is one sort. A job without an expected duration counts as the longest.
#include <algorithm>
#include <limits>

#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class MinMaxMin : public OneByOne {
 public:
  MinMaxMin(std::string_view name, bool longest_first)
      : OneByOne(name), longest_first_(longest_first) {}

 protected:
  void order(const Batch& batch, std::vector<std::uint32_t>& positions) const override {
    const auto expected = [&](std::uint32_t i) {
      const Duration duration = batch.jobs[i].expected;
      return duration > Duration{0} ? duration : Duration::max();
    };
    std::stable_sort(positions.begin(), positions.end(), [&](std::uint32_t a, std::uint32_t b) {
      return longest_first_ ? expected(a) > expected(b) : expected(a) < expected(b);
    });
  }

  std::optional<NodeIndex> best(const Job& job, const Batch& batch,
                                const Cluster& cluster) override {
    std::optional<NodeIndex> best;
    TimePoint earliest{};
    double most_free = 0;
    cluster.each_fitting(job.request, job.zones, job.gpu_models, [&](NodeIndex i) {
      const TimePoint ready = ready_at(cluster, i, batch.now);
      const double free = cluster.free_share(i);
      if (!best || ready < earliest || (ready == earliest && free > most_free)) {
        best = i, earliest = ready, most_free = free;
      }
      return true;
    });
    return best;
  }

 private:
  bool longest_first_;
};

}  // namespace

std::unique_ptr<Strategy> make_min_min(const Settings&) {
  return std::make_unique<MinMaxMin>("MinMin", false);
}
std::unique_ptr<Strategy> make_max_min(const Settings&) {
  return std::make_unique<MinMaxMin>("MaxMin", true);
}

}  // namespace kwatt::placement::strategies
