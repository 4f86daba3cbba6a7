// LeastAllocated and MostAllocated: jobs in the order of arrival, each on the node that is then the
// emptiest (fullest) by the mean of the requested shares of CPU and memory. kube-scheduler's plugin
// NodeResourcesFit with these two scoring strategies
// (pkg/scheduler/framework/plugins/noderesources), weights 1 and 1; GPUs count as a third share for
// jobs that ask for them.
#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

// Mean share of what would be free with the job, over the amounts that it asks for or that every
// node has.
double free_with(const Cluster& cluster, NodeIndex i, const Request& request) {
  const Request& full = cluster.node(i).capacity;
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  double sum = share(cluster.free_cpu(i) - request.cpu.count(), full.cpu.count()) +
               share(cluster.free_memory(i) - request.memory.count(), full.memory.count());
  if (request.gpu_milli == 0) return sum / 2;
  sum += share(cluster.free(i).gpu_milli - request.gpu_milli, full.gpu_milli);
  return sum / 3;
}

class Allocated : public OneByOne {
 public:
  Allocated(std::string_view name, double sign) : OneByOne(name), sign_(sign) {}

 protected:
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    return least(job, cluster,
                 [&](NodeIndex i) { return sign_ * free_with(cluster, i, job.request); });
  }

 private:
  double sign_;
};

}  // namespace

std::unique_ptr<Strategy> make_least_allocated(const Settings&) {
  return std::make_unique<Allocated>("LeastAllocated", -1.0);
}
std::unique_ptr<Strategy> make_most_allocated(const Settings&) {
  return std::make_unique<Allocated>("MostAllocated", 1.0);
}

}  // namespace kwatt::placement::strategies
