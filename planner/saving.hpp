#pragma once
// What emptying a node saves and disrupts.
#include <unordered_map>

#include "planner/drain.hpp"

namespace kwatt::planner {

// Estimates of one pass: the load of every node, and the totals of the policy's awake nodes.
//
//   saving     = P(node) − Σ ΔP(destinations) − (shutdown energy + boot energy) ÷ T
//   disruption = 1 + pods to move
//   score      = 100 × (saving ÷ Σ P(awake)) ÷ (disruption ÷ Σ disruption(awake))
//
// A score of 100 % saves as large a share of the power as it disrupts of the pods; Karpenter's
// Balanced consolidation approves the same ratio from 50 % on (kubernetes-sigs/karpenter PR 2942;
// every pod and every node counts 1 there, too). T is how long the node stays off at least: the
// longer of minOffDuration and minOnDuration. P is the machine's curve at the load measured over
// the last minute, or, without telemetry, at the CPU its pods request; a pod carries its share of
// that load to its destination in proportion to its request.
class Savings {
 public:
  explicit Savings(const Pass& pass);

  // No destination draws more: what saving() can be at most.
  Milliwatts at_most(const NodeView& node) const;
  Milliwatts saving(const NodeView& node, const Drained& drained) const;
  std::int64_t score(Milliwatts saving, std::size_t pods) const;

  // The share used of what matters most: requested cpu or memory, or measured cpu, in permille.
  Permille utilization(const NodeView& node) const;
  Milliwatts total_power() const { return total_power_; }
  std::int64_t total_disruption() const { return total_disruption_; }

 private:
  struct Load {
    const NodeView* node = nullptr;
    std::int64_t cpu = 0;               // millicores in use, measured or requested
    std::int64_t requested_cpu = 0;     // millicores, of all pods
    std::int64_t requested_memory = 0;  // bytes
    std::optional<Permille> measured;
  };
  Milliwatts power(const Load& load, std::int64_t extra_cpu) const;

  Duration off_for_;
  std::unordered_map<NodeName, Load> loads_;
  Milliwatts total_power_;
  std::int64_t total_disruption_ = 0;
};

}  // namespace kwatt::planner
