#pragma once
// The checks that plan() and admit() share: whether the picture can be trusted at all, and how many
// nodes may leave at once.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kwatt::planner {

// Counts for the breaker. Nodes that we switched off, and those we are waking, are no witnesses.
struct Health {
  std::int64_t witnesses = 0, unready = 0;
  bool all_unready() const { return witnesses > 0 && unready == witnesses; }
  // More than 45 % and more than 3 (cluster-autoscaler's rule).
  bool tripped() const { return unready > 3 && unready * 100 > 45 * witnesses; }
};
Health health_of(const Snapshot& snapshot, const std::vector<NodeName>& selected);
Verdict too_many_unready(const Health& health);

// Nodes taken out of service at the same time: operations PowerOff and Migrate in flight, and those
// that are added here. Nodes that are off already are not in use. Karpenter's arithmetic: a
// percentage is of the selected nodes, rounded up; the least of the active budgets counts.
class DisruptionBudgets {
 public:
  DisruptionBudgets(const Snapshot& snapshot, const api::DisruptionSpec& spec,
                    const std::vector<NodeName>& selected);

  // Why one more node may not be disrupted for this reason: BudgetExhausted, or Window where a
  // budget forbids everything for the time being. nullopt: it may.
  std::optional<Verdict> refuse(Reason reason) const;
  void add() { ++used_; }

  // For status: each budget that is active now.
  std::vector<BudgetUse> uses() const;
  // When a window that is active now closes; nullopt: none does.
  std::optional<TimePoint> next_change() const;

 private:
  struct Active {
    std::string name;
    std::int64_t allowed = 0;
    std::vector<std::string> reasons;
    std::optional<TimePoint> until;
    bool closed = false;
  };
  // The strictest of those that concern this reason; nullptr: none does.
  const Active* tightest(std::string_view reason) const;

  std::vector<Active> active_;
  std::int64_t used_ = 0;
};

// How many nodes a budget's `nodes` allows of `total`; nullopt: not an amount.
std::optional<std::int64_t> scaled_amount(const std::string& nodes, std::int64_t total);

// The awake nodes of the policy (On, Ready, in service, not leaving) against minAwake.
class AwakeFloor {
 public:
  AwakeFloor(const Snapshot& snapshot, const api::PowerOffSpec& spec,
             const std::vector<NodeName>& selected);
  // Why this node may not leave; nullopt: it may.
  std::optional<Verdict> refuse(const NodeView& node) const;
  void remove(const NodeView& node);

 private:
  const api::PowerOffSpec& spec_;
  std::int64_t awake_ = 0;
  std::map<std::string, std::int64_t> by_zone_;
};

// Does this operation take the node, or pods of it, out of service?
bool disrupts(const api::Operation& operation);
// The same for what is only planned.
bool disrupts(const What& what);

}  // namespace kwatt::planner
