#pragma once
// Nodes and pods of placement tests, with defaults.
#include <string>
#include <utility>

#include "placement/node_info.hpp"
#include "placement/registry.hpp"

namespace kwatt::placement {

// 10 CPUs, 40 GiB, 110 pods; a straight line from 50 to 150 W, so that a CPU costs 10 W; awake,
// empty.
inline NodeInfo make_node(std::string name) {
  NodeInfo node;
  node.name = std::move(name);
  auto object = std::make_shared<api::Node>();
  object->meta.name = node.name;
  node.node = object;
  node.face = face_of(*object);
  node.allocatable.cpu = Millicores{10'000};
  node.allocatable.memory = Bytes{40ll << 30};
  node.allocatable.pods = 110;
  for (std::size_t i = 0; i < 11; ++i) {
    node.model.curve.points[i] = watts(50 + 10 * static_cast<std::int64_t>(i));
  }
  return node;
}

inline NodeInfo with_object(NodeInfo node, api::Node object) {
  object.meta.name = node.name;
  node.node = std::make_shared<const api::Node>(std::move(object));
  node.face = face_of(*node.node);
  return node;
}

inline PodInfo make_pod(std::int64_t millicores, std::int64_t gibibytes = 1) {
  PodInfo pod;
  auto spec = std::make_shared<api::PodTemplate>();
  spec->requests.cpu = Millicores{millicores};
  spec->requests.memory = Bytes{gibibytes << 30};
  pod.spec = std::move(spec);
  pod.namespace_name = "shop";
  pod.name = "web-1";
  pod.owner_uid = "web";
  pod.expected = Millicores{millicores};
  return pod;
}

inline std::vector<const NodeInfo*> pointers(const std::vector<NodeInfo>& nodes) {
  std::vector<const NodeInfo*> all;
  for (const NodeInfo& node : nodes) all.push_back(&node);
  return all;
}

}  // namespace kwatt::placement
