#include "servers/extender_scores.hpp"

#include <algorithm>

namespace kwatt::servers {

std::vector<std::int64_t> extender_scores(std::span<const Ranked> nodes) {
  constexpr std::int64_t kSecond = kExtenderMost - 1;
  std::vector<std::int64_t> scores(nodes.size());
  Standing top = Standing::unknown;
  for (const Ranked& node : nodes) top = std::max(top, node.standing);
  if (top == Standing::unknown) return scores;

  // Those that are ranked: last resorts only among themselves.
  const Standing least = std::min(top, Standing::normal);
  const Ranked* best = nullptr;  // of the top standing
  std::int64_t highest = 0, lowest = 0;
  bool any = false;
  for (const Ranked& node : nodes) {
    if (node.standing < least) continue;
    if (node.standing != Standing::reserved) {
      highest = any ? std::max(highest, node.total) : node.total;
      lowest = any ? std::min(lowest, node.total) : node.total;
      any = true;
    }
    if (node.standing != top) continue;
    if (best == nullptr || node.total > best->total ||
        (node.total == best->total && node.increase < best->increase)) {
      best = &node;
    }
  }
  // Totals are sums that the framework has checked; their difference still may not fit.
  const auto distance = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) - static_cast<double>(b);
  };
  const double span = distance(highest, lowest);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Ranked& node = nodes[i];
    if (node.standing < least) continue;
    if (node.standing == Standing::reserved ||
        (node.standing == top && node.total == best->total && node.increase == best->increase)) {
      scores[i] = kExtenderMost;
    } else if (span <= 0) {
      scores[i] = kSecond;
    } else {
      const auto share = static_cast<std::int64_t>(8 * distance(node.total, lowest) / span);
      scores[i] = std::clamp<std::int64_t>(1 + share, 1, kSecond);
    }
  }
  return scores;
}

}  // namespace kwatt::servers
