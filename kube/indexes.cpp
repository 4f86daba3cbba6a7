#include "kube/indexes.hpp"

namespace kwatt::kube {

std::vector<Index<api::Pod>> pod_indexes() {
  return {
      {"node", [](const api::Pod& pod) -> std::string_view { return pod.node_name; }},
      {"owner",
       [](const api::Pod& pod) -> std::string_view {
         return pod.owner ? std::string_view{pod.owner->uid} : std::string_view{};
       }},
  };
}

}  // namespace kwatt::kube
