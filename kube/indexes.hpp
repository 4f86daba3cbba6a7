#pragma once
// The secondary indexes of the pod store, by the position they are declared in.
#include <vector>

#include "api/core.hpp"
#include "kube/store.hpp"

namespace kwatt::kube {

inline constexpr std::size_t kPodsByNode = 0;   // value: spec.nodeName
inline constexpr std::size_t kPodsByOwner = 1;  // value: uid of the controlling owner

// store.by_index(kPodsByNode, "node-1")
std::vector<Index<api::Pod>> pod_indexes();

}  // namespace kwatt::kube
