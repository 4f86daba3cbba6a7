#include "planner/room.hpp"

#include <algorithm>
#include <numeric>

namespace kwatt::planner {
namespace {

std::int64_t share(std::int64_t free, std::int64_t all) {
  return all <= 0 ? 0 : std::clamp<std::int64_t>((all - free) * 1000 / all, 0, 1000);
}

}  // namespace

Room::Room(std::vector<filters::Amounts> allocatable)
    : allocatable_(std::move(allocatable)),
      nodes_(allocatable_.size()),
      order_(allocatable_.size()) {
  std::iota(order_.begin(), order_.end(), 0u);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].free = allocatable_[i];
    nodes_[i].position = i;
  }
}

void Room::take(NodeId node, const filters::Amounts& amounts) {
  nodes_[node].free -= amounts;
  rescore(node);
}

void Room::give_back(NodeId node, const filters::Amounts& amounts) {
  nodes_[node].free += amounts;
  rescore(node);
}

void Room::set_tier(NodeId node, Tier tier) {
  nodes_[node].tier = tier;
  if (sorted_) reposition(node);
}

void Room::sort() {
  for (NodeId node = 0; node < nodes_.size(); ++node) nodes_[node].allocated = score(node);
  sorted_ = true;
  std::sort(order_.begin(), order_.end(), [this](NodeId a, NodeId b) { return before(a, b); });
  for (std::size_t i = 0; i < order_.size(); ++i) nodes_[order_[i]].position = i;
}

bool Room::before(NodeId a, NodeId b) const {
  const Node &x = nodes_[a], &y = nodes_[b];
  if (x.tier != y.tier) return x.tier < y.tier;
  if (x.allocated != y.allocated) return x.allocated > y.allocated;
  return a < b;
}

std::int64_t Room::score(NodeId node) const {
  const filters::Amounts &free = nodes_[node].free, &all = allocatable_[node];
  return (share(free.cpu, all.cpu) + share(free.memory, all.memory)) / 2;
}

void Room::rescore(NodeId node) {
  if (!sorted_) return;
  const std::int64_t allocated = score(node);
  if (allocated == nodes_[node].allocated) return;
  nodes_[node].allocated = allocated;
  reposition(node);
}

// One node changed: it moves left or right to its place, the others keep their order.
void Room::reposition(NodeId node) {
  std::size_t at = nodes_[node].position;
  const auto put = [this](NodeId which, std::size_t where) {
    order_[where] = which;
    nodes_[which].position = where;
  };
  while (at > 0 && before(node, order_[at - 1])) {
    put(order_[at - 1], at);
    --at;
  }
  while (at + 1 < order_.size() && before(order_[at + 1], node)) {
    put(order_[at + 1], at);
    ++at;
  }
  put(node, at);
}

}  // namespace kwatt::planner
