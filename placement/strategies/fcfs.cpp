// FCFS: first come, first served. Strictly in the order of arrival, nobody overtakes; each job goes
// to the first node of the list on which it fits. The reference of batch systems: D. Feitelson,
// L. Rudolph, U. Schwiegelshohn, "Parallel job scheduling: a status report", JSSPP 2004.
#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class Fcfs : public OneByOne {
 public:
  Fcfs() : OneByOne("FCFS") {}

 protected:
  bool strict() const override { return true; }
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    std::optional<NodeIndex> first;
    cluster.each_fitting(job.request, job.zones, job.gpu_models, [&](NodeIndex i) {
      first = i;
      return false;
    });
    return first;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_fcfs(const Settings&) {
  return std::make_unique<Fcfs>();
}

}  // namespace kwatt::placement::strategies
