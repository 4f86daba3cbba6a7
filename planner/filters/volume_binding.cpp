#include <fmt/format.h>

#include "planner/filters/filters.hpp"

namespace kwatt::planner::filters::volume_binding {
namespace {

enum class Trouble { none, no_claim, not_bound, no_volume, unreachable };

Trouble check(const std::string& key, const api::Node& node, const Snapshot& snapshot) {
  const auto claim = snapshot.claims.find(key);
  if (claim == snapshot.claims.end()) return Trouble::no_claim;
  if (claim->second->volume_name.empty()) return Trouble::not_bound;
  const auto volume = snapshot.volumes.find(claim->second->volume_name);
  if (volume == snapshot.volumes.end()) return Trouble::no_volume;
  return node_affinity::matches_terms(volume->second->required_node_affinity, node)
             ? Trouble::none
             : Trouble::unreachable;
}

}  // namespace

bool passes(const std::string& namespace_name, const api::PodTemplate& pod, const api::Node& node,
            const Snapshot& snapshot) {
  for (const std::string& claim : pod.claims) {
    if (check(fmt::format("{}/{}", namespace_name, claim), node, snapshot) != Trouble::none)
      return false;
  }
  return true;
}

std::string explain(const std::string& namespace_name, const api::PodTemplate& pod,
                    const api::Node& node, const Snapshot& snapshot) {
  for (const std::string& claim : pod.claims) {
    const std::string key = fmt::format("{}/{}", namespace_name, claim);
    switch (check(key, node, snapshot)) {
      case Trouble::none:
        break;
      case Trouble::no_claim:
        return fmt::format("the claim {} is not known", key);
      case Trouble::not_bound:
        return fmt::format("the claim {} is not bound to a volume yet", key);
      case Trouble::no_volume:
        return fmt::format("the volume of the claim {} is not known", key);
      case Trouble::unreachable:
        return fmt::format("the volume of the claim {} cannot be reached from node {}", key,
                           node.meta.name);
    }
  }
  return {};
}

}  // namespace kwatt::planner::filters::volume_binding
