#include "models/power_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace kwatt::models {
namespace {

constexpr double kFlat = 1e-9;

// 0 at idle, 1 at full load.
double straight(Permille load) {
  return static_cast<double>(load.count()) / 1000.0;
}
double server(Permille load) {
  static const PowerCurve shape = server_shape();
  const auto idle = static_cast<double>(shape.idle().count());
  const auto all = static_cast<double>(shape.maximum().count());
  return (static_cast<double>(shape.at(load).count()) - idle) / (all - idle);
}

struct Line {
  double idle = 0, gain = 0;  // milliwatts
};

// nullopt: the loads are all the same, or power falls.
template <class Shape>
std::optional<Line> least_squares(const std::vector<LoadPoint>& points, Shape shape) {
  const auto n = static_cast<double>(points.size());
  double x_sum = 0, y_sum = 0;
  for (const LoadPoint& point : points) {
    x_sum += shape(point.load);
    y_sum += static_cast<double>(point.power.count());
  }
  const double x_mean = x_sum / n, y_mean = y_sum / n;
  double xx = 0, xy = 0;
  for (const LoadPoint& point : points) {
    const double x = shape(point.load) - x_mean;
    xx += x * x;
    xy += x * (static_cast<double>(point.power.count()) - y_mean);
  }
  if (xx < kFlat || xy < 0) return std::nullopt;
  const double gain = xy / xx;
  const double idle = y_mean - gain * x_mean;
  if (idle < 0) return std::nullopt;
  return Line{idle, gain};
}

template <class Shape>
std::optional<PowerFit> fit(const std::vector<LoadPoint>& points, Shape shape) {
  const auto line = least_squares(points, shape);
  if (!line) return std::nullopt;
  PowerFit out;
  for (std::size_t i = 0; i < out.curve.points.size(); ++i) {
    const Permille load{static_cast<std::int64_t>(i) * 100};
    out.curve.points[i] = Milliwatts{std::llround(line->idle + line->gain * shape(load))};
  }
  double error = 0;
  for (const LoadPoint& point : points) {
    const std::int64_t off = std::abs((out.curve.at(point.load) - point.power).count());
    error += static_cast<double>(off) / static_cast<double>(point.power.count());
  }
  out.error_permille = std::llround(1000 * error / static_cast<double>(points.size()));
  out.points = points.size();
  return out;
}

}  // namespace

void LoadHistory::add(LoadPoint point) {
  const std::int64_t load = point.load.count();
  if (load < 0 || load > 1000 || point.power <= Milliwatts{0}) return;
  if (point.power.count() > std::numeric_limits<std::int32_t>::max()) return;
  Span& span = spans_[static_cast<std::size_t>(load / 50)];
  span.ring[span.next] = {static_cast<std::int32_t>(point.power.count()),
                          static_cast<std::int16_t>(load)};
  span.next = static_cast<std::uint8_t>((span.next + 1) % kEach);
  if (span.count < kEach) ++span.count;
}

std::vector<LoadPoint> LoadHistory::points() const {
  std::vector<LoadPoint> out;
  for (const Span& span : spans_) {
    const std::size_t oldest = span.count < kEach ? 0 : span.next;
    for (std::size_t i = 0; i < span.count; ++i) {
      const Stored& stored = span.ring[(oldest + i) % kEach];
      out.push_back({Permille{stored.load}, Milliwatts{stored.milliwatts}});
    }
  }
  return out;
}

std::size_t LoadHistory::size() const {
  std::size_t sum = 0;
  for (const Span& span : spans_) sum += span.count;
  return sum;
}

Result<PowerFit> fit_power(const std::vector<LoadPoint>& points, FitLimits limits) {
  if (points.size() < std::max<std::size_t>(2, limits.points)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} points measured, {} are needed", points.size(), limits.points));
  }
  const auto by_load = [](const LoadPoint& a, const LoadPoint& b) { return a.load < b.load; };
  const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_load);
  if (most->load - least->load < limits.spread) {
    return fail(ErrorCode::unsupported, fmt::format("measured only at loads of {} to {} ‰",
                                                    least->load.count(), most->load.count()));
  }
  if (std::any_of(points.begin(), points.end(),
                  [](const LoadPoint& p) { return p.power <= Milliwatts{0}; })) {
    return fail(ErrorCode::unsupported, "a point without power");
  }
  const auto line = fit(points, straight);
  const auto curve = fit(points, server);
  if (!line && !curve) {
    return fail(ErrorCode::unsupported, "the power measured does not rise with the load");
  }
  const bool straight_is_better = line && (!curve || line->error_permille <= curve->error_permille);
  PowerFit best = straight_is_better ? *line : *curve;
  best.lowest = least->load;
  best.highest = most->load;
  return best;
}

}  // namespace kwatt::models
