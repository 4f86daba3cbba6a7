#pragma once
// What ECSched and ECSched-energy share: all waiting jobs are placed at once by a min-cost flow
// from jobs to nodes (placement/flow/assignment.hpp), in rounds.
//
// A flow knows one kind of unit, jobs ask for several amounts. So a node offers as many units as
// the largest of the jobs that have an arc to it fit, and whatever flow comes back fits. What is
// left over goes into the next round with the room as it is then, at last one by one. Arcs are
// pruned: a job has one to each of settings.arcs_per_job nodes at most, taken from the cheapest
// nodes of its kind, of which there are enough for all jobs of that kind. Gangs go first, one by
// one.
#include <vector>

#include "placement/flow/assignment.hpp"
#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {

class ByFlow : public Strategy {
 public:
  std::string_view name() const final { return name_; }
  void decide(const Batch& batch, Cluster& cluster, Decision& out) final;

 protected:
  ByFlow(std::string_view name, const Settings& settings) : settings_(settings), name_(name) {}

  virtual void begin(const Cluster&) {}
  // Of a job on a node as it is now; what each further job costs the node is in price().
  virtual double cost(const Request& request, NodeIndex i, const Cluster& cluster) const = 0;
  // What the k-th (0, 1, …) job of this round costs the node, where all are of `typical` CPU;
  // `units` are offered. Made convex by the caller, which takes the greatest so far.
  virtual double price(NodeIndex, const Cluster&, std::int64_t typical, std::uint32_t k,
                       std::uint32_t units) const {
    static_cast<void>(typical), static_cast<void>(k), static_cast<void>(units);
    return 0;
  }
  const Settings settings_;

 private:
  // Places what it can and leaves the rest in `pending`. False: nothing could be placed.
  bool round(const Batch& batch, Cluster& cluster, Placer& placer,
             std::vector<std::uint32_t>& pending);

  std::string_view name_;
  std::uint64_t mark_ = 0;
};

}  // namespace kwatt::placement::strategies
