#include <doctest/doctest.h>

#include "placement/node_table.hpp"

using namespace kwatt;
using namespace kwatt::placement;

namespace {

NodeTable::Pointer node(const std::string& name) {
  auto info = std::make_shared<NodeInfo>();
  info->name = name;
  return info;
}

}  // namespace

TEST_CASE("node table: every node is found by its name, and no other") {
  std::vector<NodeTable::Pointer> nodes;
  for (int i = 0; i < 3000; ++i) nodes.push_back(node("node-" + std::to_string(i)));
  const NodeTable table{nodes};
  for (const auto& one : nodes) REQUIRE(table.find(one->name) == one.get());
  CHECK(table.find("node-3000") == nullptr);
  CHECK(table.find("") == nullptr);
  CHECK(NodeTable{}.find("node-1") == nullptr);
  CHECK(NodeTable{std::vector<NodeTable::Pointer>{}}.find("x") == nullptr);
}

TEST_CASE("node table: the next one shares what did not change, and the last one stays as it was") {
  const auto a = node("a"), b = node("b"), changed = node("b");
  const NodeTable table{{a, b}};
  const NodeTable next = table.with({{table.position("b"), changed}});
  CHECK(next.find("a") == a.get());
  CHECK(next.find("b") == changed.get());
  CHECK(table.find("b") == b.get());
}
