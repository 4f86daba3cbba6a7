#include "placement/estimator_nodes.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::placement {
namespace {

constexpr std::int64_t kMicro = 1'000;  // microwatts of a milliwatt
constexpr double kMicroOfWatt = 1'000'000;

// Between two points, to the nearest microwatt.
class Segment {
 public:
  Segment(const DrawPoint& low, const DrawPoint& high)
      : begin_(low.extra.count()),
        start_(low.draw.count() * kMicro),
        rise_((high.draw.count() - low.draw.count()) * kMicro),
        span_(high.extra.count() - low.extra.count()),
        // Products of whole numbers below 2^52 are exact in a double, and their quotient is further
        // from a half than its rounding, unless it is one.
        exact_(std::abs(static_cast<double>(rise_)) * static_cast<double>(span_) < 0x1p52) {}

  std::int64_t at(std::int64_t extra) const {
    if (exact_) {
      const double part = static_cast<double>(rise_) * static_cast<double>(extra - begin_);
      const double more = part / static_cast<double>(span_);
      return start_ + static_cast<std::int64_t>(more < 0 ? more - 0.5 : more + 0.5);
    }
    // A million CPUs times 100 MW do not fit into 64 bits either.
    __extension__ using Wide = __int128;
    const Wide part = Wide{rise_} * (extra - begin_);
    const Wide half = part < 0 ? -(span_ / 2) : span_ / 2;
    return start_ + static_cast<std::int64_t>((part + half) / span_);
  }

 private:
  std::int64_t begin_, start_, rise_, span_;
  bool exact_;
};

bool on_the_line(const DrawPoint& a, const DrawPoint& b, const DrawPoint& c) {
  __extension__ using Wide = __int128;
  return Wide{b.draw.count() - a.draw.count()} * (c.extra.count() - a.extra.count()) ==
         Wide{c.draw.count() - a.draw.count()} * (b.extra.count() - a.extra.count());
}

}  // namespace

std::vector<DrawPoint> without_needless(const std::vector<DrawPoint>& points) {
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
  if (each.count() == 0) return Increases(fit, 0);
  std::size_t at = 0;
  for (std::size_t count = 1; count <= fit;) {
    // fit > 0 needs room for one, so there are two points at least.
    while (at + 2 < node.draw.size() &&
           node.draw[at + 1].extra.count() < each.count() * static_cast<std::int64_t>(count)) {
      ++at;
    }
    const Segment segment(node.draw[at], node.draw[at + 1]);
    const std::int64_t end = node.draw[at + 1].extra.count();
    do {
      const std::int64_t extra = each.count() * static_cast<std::int64_t>(count);
      out.push_back(static_cast<double>(segment.at(extra) - now));
      ++count;
    } while (count <= fit && each.count() * static_cast<std::int64_t>(count) <= end);
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
