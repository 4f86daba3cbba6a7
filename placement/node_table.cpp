#include "placement/node_table.hpp"

#include <algorithm>
#include <array>
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
  return index_ == nullptr ? nodes_.size() : position(name, hash_of(name));
}

std::size_t NodeTable::position(std::string_view name, std::uint32_t hash) const {
  const std::vector<Slot>& slots = index_->slots;
  const std::string_view names = index_->names;
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

void NodeTable::find(std::span<const std::string_view> names,
                     std::span<const NodeInfo*> found) const {
  if (index_ == nullptr) {
    std::fill(found.begin(), found.end(), nullptr);
    return;
  }
  // A name's slot and text lie anywhere: both are fetched for a few names before the first of them
  // is compared.
  constexpr std::size_t kAtATime = 16;
  const std::vector<Slot>& slots = index_->slots;
  const std::size_t mask = slots.size() - 1;
  for (std::size_t first = 0; first < names.size(); first += kAtATime) {
    const std::size_t count = std::min(kAtATime, names.size() - first);
    std::array<std::uint32_t, kAtATime> hashes{};
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(names[first + i]);
      __builtin_prefetch(&slots[hashes[i] & mask]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      __builtin_prefetch(index_->names.data() + slots[hashes[i] & mask].begin);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = position(names[first + i], hashes[i]);
      found[first + i] = at < nodes_.size() ? nodes_[at].get() : nullptr;
    }
  }
}

NodeTable NodeTable::with(const std::vector<std::pair<std::size_t, Pointer>>& replaced) const {
  NodeTable next = *this;
  for (const auto& [at, node] : replaced) next.nodes_[at] = node;
  return next;
}

}  // namespace kwatt::placement
