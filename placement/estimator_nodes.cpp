#include "placement/estimator_nodes.hpp"

#include <algorithm>

namespace kwatt::placement {
namespace {

constexpr std::int64_t kMicro = 1'000;  // microwatts of a milliwatt
constexpr double kMicroOfWatt = 1'000'000;

// At `extra` between two points, rounded to the nearest microwatt. 128 bits: a million CPUs times
// 100 MW do not fit into 64.
std::int64_t microwatts_between(const DrawPoint& low, const DrawPoint& high, Millicores extra) {
  __extension__ using Wide = __int128;
  const Wide rise = Wide{high.draw.count() - low.draw.count()} * kMicro;
  const Wide span = high.extra.count() - low.extra.count();
  const Wide part = rise * (extra.count() - low.extra.count());
  const Wide half = part < 0 ? -(span / 2) : span / 2;
  return low.draw.count() * kMicro + static_cast<std::int64_t>((part + half) / span);
}

bool on_the_line(const DrawPoint& a, const DrawPoint& b, const DrawPoint& c) {
  __extension__ using Wide = __int128;
  return Wide{b.draw.count() - a.draw.count()} * (c.extra.count() - a.extra.count()) ==
         Wide{c.draw.count() - a.draw.count()} * (b.extra.count() - a.extra.count());
}

}  // namespace

std::vector<DrawPoint> without_needless(std::vector<DrawPoint> points) {
  std::vector<DrawPoint> kept;
  for (const DrawPoint& point : points) {
    while (kept.size() >= 2 && on_the_line(kept[kept.size() - 2], kept.back(), point)) {
      kept.pop_back();
    }
    kept.push_back(point);
  }
  return kept;
}

Increases increases_of(const EstimatorNode& node, Millicores each, std::size_t workloads) {
  Increases out;
  if (node.draw.empty() || node.free_pods <= 0 || each > node.free) return out;
  std::size_t fit = std::min(workloads, static_cast<std::size_t>(node.free_pods));
  if (each.count() > 0) {
    const std::int64_t room = std::min(node.free, node.draw.back().extra).count();
    fit = std::min(fit, static_cast<std::size_t>(std::max<std::int64_t>(0, room / each.count())));
  }
  out.reserve(fit);
  const std::int64_t now = node.draw.front().draw.count() * kMicro;
  std::size_t segment = 0;
  for (std::size_t count = 1; count <= fit; ++count) {
    const Millicores extra = each * static_cast<std::int64_t>(count);
    while (segment + 2 < node.draw.size() && node.draw[segment + 1].extra < extra) ++segment;
    const std::int64_t then =
        extra == Millicores{0}
            ? now
            : microwatts_between(node.draw[segment], node.draw[segment + 1], extra);
    out.push_back(static_cast<double>(then - now));
  }
  return out;
}

std::vector<double> least_watts(const EstimatorNodes& nodes, Millicores each,
                                std::size_t workloads) {
  std::vector<Increases> increases;
  increases.reserve(nodes.nodes.size());
  for (const EstimatorNode& node : nodes.nodes) {
    increases.push_back(increases_of(node, each, workloads));
  }
  std::vector<double> least = least_increases(increases, workloads);
  for (double& one : least) one /= kMicroOfWatt;
  return least;
}

}  // namespace kwatt::placement
