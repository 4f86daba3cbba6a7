#include <algorithm>

#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::taint_toleration {
namespace {

const api::Taint* untolerated(const api::PodTemplate& pod, const NodeFace& node) {
  const auto at = std::find_if(
      node.taints.begin(), node.taints.end(),
      [&](const api::Taint* taint) { return !api::tolerates(pod.tolerations, *taint); });
  return at == node.taints.end() ? nullptr : *at;
}

}  // namespace

bool passes(const api::PodTemplate& pod, const NodeFace& node) {
  return untolerated(pod, node) == nullptr;
}

std::string explain(const api::PodTemplate& pod, const NodeFace& node) {
  const api::Taint* taint = untolerated(pod, node);
  if (taint == nullptr) return {};
  const std::string value = taint->value.empty() ? "" : "=" + taint->value;
  return fmt::format("node {} has the taint {}{}:{} that the pod does not tolerate",
                     node.node->meta.name, taint->key, value, taint->effect);
}

}  // namespace kwatt::placement::filters::taint_toleration
