#include "placement/node_table.hpp"

#include <bit>
#include <functional>

namespace kwatt::placement {
namespace {

std::uint32_t hash_of(std::string_view name) {
  const auto full = static_cast<std::uint64_t>(std::hash<std::string_view>{}(name));
  return static_cast<std::uint32_t>(full ^ (full >> 32));
}

}  // namespace

NodeTable::NodeTable(std::vector<Pointer> nodes) : nodes_(std::move(nodes)) {
  Index index(std::bit_ceil(nodes_.size() * 2 + 1));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::uint32_t hash = hash_of(nodes_[i]->name);
    std::size_t at = hash & (index.size() - 1);
    while (index[at].position != 0) at = (at + 1) & (index.size() - 1);
    index[at] = {hash, static_cast<std::uint32_t>(i + 1)};
  }
  index_ = std::make_shared<const Index>(std::move(index));
}

std::size_t NodeTable::position(std::string_view name) const {
  if (index_ == nullptr) return nodes_.size();
  const Index& index = *index_;
  const std::uint32_t hash = hash_of(name);
  for (std::size_t at = hash & (index.size() - 1); index[at].position != 0;
       at = (at + 1) & (index.size() - 1)) {
    if (index[at].hash == hash && nodes_[index[at].position - 1]->name == name) {
      return index[at].position - 1;
    }
  }
  return nodes_.size();
}

const NodeInfo* NodeTable::find(std::string_view name) const {
  const std::size_t at = position(name);
  return at < nodes_.size() ? nodes_[at].get() : nullptr;
}

NodeTable NodeTable::with(const std::vector<std::pair<std::size_t, Pointer>>& replaced) const {
  NodeTable next = *this;
  for (const auto& [at, node] : replaced) next.nodes_[at] = node;
  return next;
}

}  // namespace kwatt::placement
