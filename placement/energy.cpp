#include "placement/energy.hpp"

#include <algorithm>

namespace kwatt::placement {

Millicores used_now(const NodeInfo& node) {
  if (!node.awake) return Millicores{0};
  return Millicores{node.full_load().count() * node.load.count() / 1000};
}

Milliwatts wake_cost(const NodeInfo& node, const EnergySettings& settings) {
  if (node.awake) return Milliwatts{0};
  const std::int64_t over = std::max<std::int64_t>(1, settings.boot_over.count());  // milliseconds
  const Milliwatts boot{node.model.boot_energy.count() * 1000 / over};
  return node.model.curve.idle() - node.model.standby + boot;
}

Increase increase(const NodeInfo& node, Millicores extra, const EnergySettings& settings) {
  if (node.awake && node.predicted != nullptr) {
    const auto before = node.predicted->at(Millicores{0});
    const auto after = node.predicted->at(extra);
    if (before && after) return {*after - *before, true};
  }
  const models::PowerCurve& curve = node.model.curve;
  const Millicores used = used_now(node), full = node.full_load();
  return {curve.at(used + extra, full) - curve.at(used, full) + wake_cost(node, settings), false};
}

void normalize_costs(ScoreRange range, std::span<std::int64_t> costs, std::int64_t smooth) {
  if (costs.empty()) return;
  const std::int64_t least = *std::min_element(costs.begin(), costs.end());
  const std::int64_t base = std::max<std::int64_t>(least, 0) + smooth;
  // Floating point for the quotient alone: a product of two scores may need 128 bits.
  const double width = static_cast<double>(range.most) - static_cast<double>(range.least);
  for (std::int64_t& cost : costs) {
    if (cost == least) {
      cost = range.most;
      continue;
    }
    const double above = static_cast<double>(cost) - static_cast<double>(least);
    const double share = static_cast<double>(base) / (static_cast<double>(base) + above);
    const double score = static_cast<double>(range.least) + width * share;
    const std::int64_t below = std::max(range.least, range.most - 1);
    cost = score >= static_cast<double>(below) ? below : static_cast<std::int64_t>(score);
  }
}

}  // namespace kwatt::placement
