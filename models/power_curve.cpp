#include "models/power_curve.hpp"

#include <algorithm>

namespace kwatt::models {
namespace {

// Shape of a server of 2018-2022 in permille of its power at full load: the medians of the 155
// single-node systems with one or two sockets and that availability date among the published
// results of SPECpower_ssj2008 (https://www.spec.org/power_ssj2008/results/). SPEC and
// SPECpower_ssj are trademarks of the Standard Performance Evaluation Corporation.
constexpr std::array<std::int64_t, 11> kShapePermille = {225, 351, 404, 466, 516, 561,
                                                         617, 692, 793, 896, 1000};
// Power at full load of the same systems against their logical CPUs: the median of pairwise slopes
// (Theil-Sen) and the intercept that goes with it.
constexpr std::int64_t kMaximumBaseMilliwatts = 108'000;
constexpr std::int64_t kMaximumPerCpuMilliwatts = 1'500;

PowerCurve line(std::int64_t idle, std::int64_t maximum) {
  PowerCurve curve;
  for (std::int64_t i = 0; i <= 10; ++i) {
    curve.points[static_cast<std::size_t>(i)] = Milliwatts{idle + (maximum - idle) * i / 10};
  }
  return curve;
}

PowerCurve default_curve(Millicores cores) {
  const std::int64_t cpus = std::max<std::int64_t>(1, (cores.count() + 999) / 1000);
  const std::int64_t maximum = kMaximumBaseMilliwatts + kMaximumPerCpuMilliwatts * cpus;
  PowerCurve curve;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    curve.points[i] = Milliwatts{maximum * kShapePermille[i] / 1000};
  }
  return curve;
}

Millijoules energy(Milliwatts power, Duration time) {
  return Millijoules{power.count() * time.count() / 1000};
}

}  // namespace

Milliwatts PowerCurve::at(Permille load) const {
  const std::int64_t l = std::clamp<std::int64_t>(load.count(), 0, 1000);
  const auto below = static_cast<std::size_t>(l / 100);
  const std::int64_t rest = l % 100;
  if (rest == 0) return points[below];
  return points[below] + (points[below + 1] - points[below]) * rest / 100;
}

PowerCurve server_shape() {
  PowerCurve curve;
  std::transform(kShapePermille.begin(), kShapePermille.end(), curve.points.begin(),
                 [](std::int64_t share) { return Milliwatts{share}; });
  return curve;
}

Milliwatts PowerCurve::at(Millicores used, Millicores full) const {
  if (full.count() <= 0) return idle();
  const std::int64_t u = std::clamp<std::int64_t>(used.count(), 0, full.count());
  const auto below = static_cast<std::size_t>(u * 10 / full.count());
  const std::int64_t rest = u * 10 % full.count();
  if (rest == 0) return points[below];
  return points[below] + (points[below + 1] - points[below]) * rest / full.count();
}

PowerModel model_of(const api::PowerModelSpec& spec, Millicores cores) {
  PowerModel model;
  if (spec.curve_milliwatts.size() == model.curve.points.size()) {
    std::transform(spec.curve_milliwatts.begin(), spec.curve_milliwatts.end(),
                   model.curve.points.begin(), [](std::int64_t mw) { return Milliwatts{mw}; });
    model.specified = true;
  } else if (spec.max_milliwatts > 0) {
    model.curve = line(spec.idle_milliwatts, spec.max_milliwatts);
    model.specified = true;
  } else {
    model.curve = default_curve(cores);
  }
  model.standby = Milliwatts{spec.standby_milliwatts};
  model.boot = std::chrono::seconds{spec.boot_seconds};
  model.shutdown = std::chrono::seconds{spec.shutdown_seconds};
  model.boot_energy = spec.boot_joules > 0 ? Millijoules{spec.boot_joules * 1000}
                                           : energy(model.curve.maximum(), model.boot);
  // Services stop first, so a machine that shuts down draws about what an idle one does.
  model.shutdown_energy = energy(model.curve.idle(), model.shutdown);
  return model;
}

}  // namespace kwatt::models
