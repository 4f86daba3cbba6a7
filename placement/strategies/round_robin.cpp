// RoundRobin: strictly in the order of arrival, each job to the next node of the list on which it
// fits, so that all nodes get the same number of jobs. The cyclic assignment of T. Casavant, J.
// Kuhl, "A taxonomy of scheduling in general-purpose distributed computing systems", IEEE TSE
// 14(2), 1988.
#include "placement/strategies/all.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {
namespace {

class RoundRobin : public OneByOne {
 public:
  RoundRobin() : OneByOne("RoundRobin") {}

 protected:
  bool strict() const override { return true; }
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    return next_.take(job, cluster);
  }

 private:
  Round next_;
};

}  // namespace

std::unique_ptr<Strategy> make_round_robin(const Settings&) {
  return std::make_unique<RoundRobin>();
}

}  // namespace kwatt::placement::strategies
