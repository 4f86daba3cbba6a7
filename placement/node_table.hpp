#pragma once
// All nodes at one moment, to be looked up by name. Immutable once made: one writer makes the next
// table out of the last one and shares what did not change; any number of threads read.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/node_info.hpp"

namespace kwatt::placement {

class NodeTable {
 public:
  using Pointer = std::shared_ptr<const NodeInfo>;

  NodeTable() = default;
  // Names must differ; the order is kept.
  explicit NodeTable(std::vector<Pointer> nodes);

  // nullptr: no such node.
  const NodeInfo* find(std::string_view name) const;
  // The same for many names at once, several times as quick: found[i] belongs to names[i], and both
  // have the same size.
  void find(std::span<const std::string_view> names, std::span<const NodeInfo*> found) const;
  // The position in nodes(); size() if there is none of that name.
  std::size_t position(std::string_view name) const;
  const std::vector<Pointer>& nodes() const { return nodes_; }
  std::size_t size() const { return nodes_.size(); }

  // The same with some nodes replaced, each by one of the same name. Costs a copy of the pointers.
  NodeTable with(const std::vector<std::pair<std::size_t, Pointer>>& replaced) const;

 private:
  // Open addressing, at most half full. The hash is kept, so that a miss costs no string; the names
  // lie side by side, so that a hit does not fetch the node.
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t position = 0;         // + 1; 0: empty
    std::uint32_t begin = 0, size = 0;  // of the name in `names`
  };
  struct Index {
    std::vector<Slot> slots;
    std::string names;
  };

  std::size_t position(std::string_view name, std::uint32_t hash) const;

  std::vector<Pointer> nodes_;
  std::shared_ptr<const Index> index_;  // shared as long as no node comes or goes
};

}  // namespace kwatt::placement
