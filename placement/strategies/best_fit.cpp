// BestFit: jobs in the order of arrival, each on the node that it leaves with the least room: the
// weighted sum of free CPU, memory and GPU, each measured by the largest node of the cluster.
// Multi- dimensional best fit as in R. Panigrahy et al., "Heuristics for vector bin packing",
// Microsoft Research, 2011, and in FGD's comparison (Q. Weng et al., USENIX ATC 2023). Differs from
// MostAllocated on machines of different sizes: it fills the small ones first.
#include <algorithm>

#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class BestFit : public OneByOne {
 public:
  BestFit() : OneByOne("BestFit") {}

 protected:
  void begin(const Batch&, const Cluster& cluster) override {
    const Request& most = cluster.largest();
    const auto per = [](std::int64_t amount) {
      return 1.0 / static_cast<double>(std::max<std::int64_t>(1, amount));
    };
    per_cpu_ = per(most.cpu.count());
    per_memory_ = per(most.memory.count());
    per_gpu_ = per(most.gpu_milli);
  }

  // What the job takes is the same everywhere: the least free before is the least free after.
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    return least(job, cluster, [&](NodeIndex i) {
      double room = static_cast<double>(cluster.free_cpu(i)) * per_cpu_ +
                    static_cast<double>(cluster.free_memory(i)) * per_memory_;
      for (const std::int32_t part : cluster.free_gpus(i)) room += part * per_gpu_;
      return room;
    });
  }

 private:
  double per_cpu_ = 1, per_memory_ = 1, per_gpu_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_best_fit(const Settings&) {
  return std::make_unique<BestFit>();
}

}  // namespace kwatt::placement::strategies
