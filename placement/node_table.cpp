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
  Index index;
  index.slots.resize(std::bit_ceil(nodes_.size() * 2 + 1));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string& name = nodes_[i]->name;
    const std::uint32_t hash = hash_of(name);
    std::size_t at = hash & (index.slots.size() - 1);
    while (index.slots[at].position != 0) at = (at + 1) & (index.slots.size() - 1);
    index.slots[at] = {hash, static_cast<std::uint32_t>(i + 1),
                       static_cast<std::uint32_t>(index.names.size()),
                       static_cast<std::uint32_t>(name.size())};
    index.names += name;
  }
  index_ = std::make_shared<const Index>(std::move(index));
}

std::size_t NodeTable::position(std::string_view name) const {
  if (index_ == nullptr) return nodes_.size();
  const std::vector<Slot>& slots = index_->slots;
  const std::string_view names = index_->names;
  const std::uint32_t hash = hash_of(name);
  for (std::size_t at = hash & (slots.size() - 1); slots[at].position != 0;
       at = (at + 1) & (slots.size() - 1)) {
    const Slot& slot = slots[at];
    if (slot.hash == hash && names.substr(slot.begin, slot.size) == name) return slot.position - 1;
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
