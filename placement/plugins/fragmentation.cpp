// Fragmentation: room that nobody can use. The difference between the shares of cpu and memory that
// would stay free, in permille, and 500 more for taking room beside devices (extended resources)
// that the pod does not ask for. The least is best.
#include <algorithm>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

constexpr std::int64_t kWhole = 1000, kBesideDevices = 500;

std::int64_t free_share(std::int64_t all, std::int64_t taken) {
  return all <= 0 ? 0 : std::clamp<std::int64_t>((all - taken) * kWhole / all, 0, kWhole);
}

// bytes × 1000 would leave 64 bits at 8 PiB.
std::int64_t mebibytes(Bytes bytes) {
  return bytes.count() >> 20;
}

bool takes_room_of_devices(const api::Resources& need, const NodeInfo& node) {
  return std::any_of(node.allocatable.extended.begin(), node.allocatable.extended.end(),
                     [&](const auto& device) {
                       if (device.second <= 0) return false;
                       const auto wanted = need.extended.find(device.first);
                       return wanted == need.extended.end() || wanted->second <= 0;
                     });
}

class Fragmentation : public NodePlugin {
 public:
  std::string_view name() const override { return "Fragmentation"; }
  std::string_view unit() const override { return "permille"; }
  bool scores() const override { return true; }
  Status score(const PodInfo& pod, const NodeInfo& node, const CycleState*,
               std::int64_t& out) const override {
    const api::Resources& need = pod.spec->requests;
    const std::int64_t cpu =
        free_share(node.allocatable.cpu.count(), (node.requested.cpu + need.cpu).count());
    const std::int64_t memory = free_share(mebibytes(node.allocatable.memory),
                                           mebibytes(node.requested.memory + need.memory));
    out = cpu > memory ? cpu - memory : memory - cpu;
    if (takes_room_of_devices(need, node)) out += kBesideDevices;
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    const double width = static_cast<double>(range.most) - static_cast<double>(range.least);
    for (std::int64_t& score : scores) {
      const double share =
          1.0 - static_cast<double>(score) / static_cast<double>(kWhole + kBesideDevices);
      score = score == 0 ? range.most : range.least + static_cast<std::int64_t>(width * share);
    }
    return {};
  }
};

}  // namespace

std::shared_ptr<const NodePlugin> make_fragmentation(const PluginSettings&) {
  return std::make_shared<Fragmentation>();
}

}  // namespace kwatt::placement
