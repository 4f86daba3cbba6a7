// ECSched: all waiting jobs at once, as a min-cost flow from jobs to nodes in which an arc costs
// the dot product of what the job demands and what the node has free, D_i · C_j, both as shares of
// the largest node: scarce room that matches no demand is left alone, large free nodes are kept for
// large jobs. Y. Hu, H. Zhou, C. de Laat, Z. Zhao, "ECSched: efficient container scheduling on
// heterogeneous clusters", Euro-Par 2018, and "Concurrent container scheduling on heterogeneous
// clusters with multi-resource constraints", FGCS 102, 2020. How several amounts become units of
// flow: by_flow.hpp.
#include <algorithm>

#include "placement/strategies/all.hpp"
#include "placement/strategies/by_flow.hpp"

namespace kwatt::placement::strategies {
namespace {

class EcSched : public ByFlow {
 public:
  explicit EcSched(const Settings& settings) : ByFlow("ECSched", settings) {}

 protected:
  void begin(const Cluster& cluster) override {
    const Request& most = cluster.largest();
    cpu_ = std::max(1.0, static_cast<double>(most.cpu.count()));
    memory_ = std::max(1.0, static_cast<double>(most.memory.count()));
    gpu_ = std::max(1.0, static_cast<double>(most.gpu_milli));
  }
  double cost(const Request& request, NodeIndex i, const Cluster& cluster) const override {
    double product =
        share(request.cpu.count(), cpu_) * share(cluster.free_cpu(i), cpu_) +
        share(request.memory.count(), memory_) * share(cluster.free_memory(i), memory_);
    for (const std::int32_t part : cluster.free_gpus(i)) {
      product += share(request.gpu_milli, gpu_) * share(part, gpu_);
    }
    return product;
  }

 private:
  static double share(std::int64_t part, double whole) { return static_cast<double>(part) / whole; }
  double cpu_ = 1, memory_ = 1, gpu_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_ecsched(const Settings& settings) {
  return std::make_unique<EcSched>(settings);
}

}  // namespace kwatt::placement::strategies
