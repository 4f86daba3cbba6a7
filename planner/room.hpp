#pragma once
// Free resources per node, and the order in which destinations are tried: kept sorted while pods
// come and go, so that a placement looks at the fullest nodes first and stops at the first fit.
#include <vector>

#include "planner/pod_index.hpp"

namespace kwatt::planner {

enum class Tier : std::uint8_t {
  normal,       // awake, at full speed
  last_resort,  // awake but slow or capped: only if nothing else fits
  none          // not a destination
};

class Room {
 public:
  // The nodes in name order with what they offer in all.
  explicit Room(std::vector<filters::Amounts> allocatable);

  void take(NodeId node, const filters::Amounts& amounts);
  void give_back(NodeId node, const filters::Amounts& amounts);
  void set_tier(NodeId node, Tier tier);
  Tier tier(NodeId node) const { return nodes_[node].tier; }
  const filters::Amounts& free(NodeId node) const { return nodes_[node].free; }
  const filters::Amounts& allocatable(NodeId node) const { return allocatable_[node]; }

  // By tier, then most allocated, then name. Until the first call of sort() the order is undefined;
  // from then on it is kept.
  void sort();
  const std::vector<NodeId>& order() const { return order_; }

 private:
  struct Node {
    filters::Amounts free;
    std::int64_t allocated = 0;  // permille: the mean of cpu and memory, as MostAllocated scores
    std::size_t position = 0;    // in order_
    Tier tier = Tier::none;
  };
  bool before(NodeId a, NodeId b) const;
  std::int64_t score(NodeId node) const;
  void rescore(NodeId node);
  void reposition(NodeId node);

  std::vector<filters::Amounts> allocatable_;
  std::vector<Node> nodes_;
  std::vector<NodeId> order_;
  bool sorted_ = false;
};

}  // namespace kwatt::planner
