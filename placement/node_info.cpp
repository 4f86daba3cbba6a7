#include "placement/node_info.hpp"

#include <algorithm>

namespace kwatt::placement {

std::optional<Milliwatts> PredictedWatts::at(Millicores extra) const {
  const auto above =
      std::lower_bound(at_extra.begin(), at_extra.end(), extra,
                       [](const auto& entry, Millicores e) { return entry.first < e; });
  if (above == at_extra.end()) return std::nullopt;
  if (above->first == extra) return above->second;
  if (above == at_extra.begin()) return std::nullopt;
  const auto& [x0, y0] = *(above - 1);
  const auto& [x1, y1] = *above;
  return y0 + Milliwatts{(y1 - y0).count() * (extra - x0).count() / (x1 - x0).count()};
}

PodInfo pod_info_of(const api::Pod& pod) {
  PodInfo info;
  info.spec = pod.spec;
  info.namespace_name = pod.namespace_name;
  info.name = pod.name;
  info.uid = pod.uid;
  if (pod.owner != nullptr) info.owner_uid = pod.owner->uid;
  info.expected = pod.spec->requests.cpu;
  return info;
}

const Reservation* reservation_for(const PodInfo& pod, const NodeInfo& node) {
  for (const Reservation& room : node.reserved) {
    if (room.namespace_name != pod.namespace_name) continue;
    const bool same_owner = !room.owner_uid.empty() && room.owner_uid == pod.owner_uid;
    const bool same_pod = !room.pod_uid.empty() && room.pod_uid == pod.uid;
    if (same_owner || same_pod) return &room;
  }
  return nullptr;
}

}  // namespace kwatt::placement
