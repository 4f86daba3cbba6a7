#include "models/learned_power.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::models {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::array<std::string_view, kStateInputs> kNames{
    "utilization",         "busy",           "instructions", "cache misses",
    "ambient temperature", "cpu temperature"};
constexpr double kHuber = 1.345;  // 95 % as efficient as least squares where errors are normal
constexpr double kMadToSigma = 1.4826;
constexpr double kLeastSigma = 1e-4;  // of the relative error
constexpr int kRounds = 30;
constexpr double kStill = 1e-7;
constexpr double kFlat = 1e-6;
constexpr std::size_t kBlocks = 5;
constexpr Index kSamplesPerTerm = 3;

enum class Form { linear, quadratic };
// What is tried. The quadratic ones need more samples; of them the one that bends less comes first.
struct Shape {
  Form form;
  double ridge;  // of standardized terms, for each sample
};
constexpr std::array<Shape, 3> kShapes{
    {{Form::linear, 1e-3}, {Form::quadratic, 1e-2}, {Form::quadratic, 1e-3}}};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// Inputs → terms → standardized → coefficients.
struct LearnedPower::Fit {
  Form form = Form::linear;
  std::vector<std::size_t> used;              // which inputs
  std::vector<double> mean, lowest, highest;  // of each used input
  VectorXd centre, scale;                     // of each term
  VectorXd coefficients;                      // the first is the constant
  double least_watts = 0, most_watts = 0;

  Index terms() const {
    const auto n = static_cast<Index>(used.size());
    return form == Form::linear ? n : n + n * (n + 1) / 2;
  }
  VectorXd terms_of(const std::vector<double>& x) const {
    VectorXd out(terms());
    Index at = 0;
    for (const double value : x) out[at++] = value;
    if (form == Form::quadratic) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t j = i; j < x.size(); ++j) out[at++] = x[i] * x[j];
      }
    }
    return out;
  }
  std::vector<double> inputs(const StateInputs& all) const {
    std::vector<double> x;
    x.reserve(used.size());
    for (const std::size_t input : used) x.push_back(static_cast<double>(all[input]));
    return x;
  }
  double watts(const std::vector<double>& x) const {
    const VectorXd z = (terms_of(x) - centre).cwiseQuotient(scale);
    const double raw = coefficients[0] + z.dot(coefficients.tail(z.size()));
    return std::clamp(raw, least_watts, most_watts);
  }
};

namespace {

using Samples = std::vector<PowerSample>;

// Those that every sample has and that are not always the same.
std::vector<std::size_t> varied_inputs(const Samples& samples) {
  std::vector<std::size_t> used;
  for (std::size_t input = 0; input < kStateInputs; ++input) {
    float least = 0, most = 0;
    bool known = true;
    for (std::size_t i = 0; i < samples.size() && known; ++i) {
      const float value = samples[i].inputs[input];
      known = !std::isnan(value);
      least = i == 0 ? value : std::min(least, value);
      most = i == 0 ? value : std::max(most, value);
    }
    if (known && most - least > static_cast<float>(kFlat)) used.push_back(input);
  }
  return used;
}

}  // namespace

// Everything that is estimated from data is estimated from `samples` alone.
template <class Fit>
static Fit fit_shape(const Samples& samples, Shape shape, const std::vector<std::size_t>& used) {
  Fit fit;
  fit.form = shape.form;
  fit.used = used;
  const auto n = static_cast<Index>(samples.size());
  const Index terms = fit.terms();
  MatrixXd z(n, terms + 1);
  VectorXd y(n);
  fit.mean.assign(used.size(), 0);
  fit.lowest.assign(used.size(), 0);
  fit.highest.assign(used.size(), 0);
  for (Index row = 0; row < n; ++row) {
    const PowerSample& sample = samples[static_cast<std::size_t>(row)];
    const std::vector<double> x = fit.inputs(sample.inputs);
    for (std::size_t i = 0; i < x.size(); ++i) {
      fit.mean[i] += x[i] / static_cast<double>(n);
      fit.lowest[i] = row == 0 ? x[i] : std::min(fit.lowest[i], x[i]);
      fit.highest[i] = row == 0 ? x[i] : std::max(fit.highest[i], x[i]);
    }
    z.row(row).tail(terms) = fit.terms_of(x).transpose();
    y[row] = static_cast<double>(sample.watts);
  }
  z.col(0).setOnes();
  fit.centre = z.rightCols(terms).colwise().mean().transpose();
  fit.scale.resize(terms);
  for (Index term = 0; term < terms; ++term) {
    auto column = z.col(term + 1);
    column.array() -= fit.centre[term];
    fit.scale[term] = std::max(kFlat, std::sqrt(column.squaredNorm() / static_cast<double>(n)));
    column /= fit.scale[term];
  }
  fit.least_watts = y.minCoeff();
  fit.most_watts = y.maxCoeff();

  // A watt counts for more where little is drawn.
  const VectorXd relative = (y.mean() / y.array()).square().matrix();
  VectorXd weights = relative;
  fit.coefficients = VectorXd::Zero(terms + 1);
  for (int round = 0; round < kRounds; ++round) {
    const MatrixXd weighted = weights.asDiagonal() * z;
    MatrixXd normal = z.transpose() * weighted;
    normal.diagonal().tail(terms).array() += shape.ridge * static_cast<double>(n);
    const VectorXd next = normal.ldlt().solve(weighted.transpose() * y);
    const double moved = (next - fit.coefficients).norm() / (1 + next.norm());
    fit.coefficients = next;
    if (moved < kStill) break;
    const VectorXd off = ((y - z * next).array() / y.array()).abs().matrix();
    const double sigma =
        std::max(kLeastSigma, kMadToSigma * median({off.data(), off.data() + off.size()}));
    weights = relative.array() * (kHuber * sigma / off.array().max(1e-12)).min(1.0);
  }
  return fit;
}

namespace {

// Relative errors at samples that the model had not seen: five blocks by time, each predicted from
// the other four.
template <class Fit>
std::vector<double> held_out(const Samples& samples, Shape shape,
                             const std::vector<std::size_t>& used) {
  std::vector<double> errors;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const std::size_t begin = samples.size() * block / kBlocks;
    const std::size_t end = samples.size() * (block + 1) / kBlocks;
    Samples others(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(begin));
    others.insert(others.end(), samples.begin() + static_cast<std::ptrdiff_t>(end), samples.end());
    const Fit fit = fit_shape<Fit>(others, shape, used);
    for (std::size_t i = begin; i < end; ++i) {
      const double measured = static_cast<double>(samples[i].watts);
      errors.push_back(std::abs(fit.watts(fit.inputs(samples[i].inputs)) - measured) / measured);
    }
  }
  return errors;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

LearnedEstimate LearnedPower::at(const MachineState& state) const {
  std::vector<double> x = fit_->inputs(inputs_of(state));
  LearnedEstimate out;
  out.in_range = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) x[i] = fit_->mean[i];
    const double inside = std::clamp(x[i], fit_->lowest[i], fit_->highest[i]);
    // A little beyond is still what was measured.
    const double slack = 0.02 * (fit_->highest[i] - fit_->lowest[i]);
    if (std::abs(x[i] - inside) > slack) out.in_range = false;
    x[i] = inside;
  }
  out.power = Milliwatts{std::llround(1000 * fit_->watts(x))};
  return out;
}

std::string LearnedPower::form() const {
  std::vector<std::string_view> names;
  for (const std::size_t input : fit_->used) names.push_back(kNames[input]);
  return fmt::format("{} in {}", fit_->form == Form::linear ? "linear" : "quadratic",
                     fmt::join(names, ", "));
}

Result<LearnedPower> learn_power(const std::vector<PowerSample>& samples, LearnLimits limits) {
  if (samples.size() < limits.samples) {
    return fail(ErrorCode::unsupported, fmt::format("{} of {} measurements at a steady load so far",
                                                    samples.size(), limits.samples));
  }
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(),
      [](const PowerSample& a, const PowerSample& b) { return a.inputs[0] < b.inputs[0]; });
  const Permille lowest{std::llround(1000 * least->inputs[0])};
  const Permille highest{std::llround(1000 * most->inputs[0])};
  if (highest - lowest < limits.spread) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("the load was only seen between {}.{} % and {}.{} %", lowest.count() / 10,
                    lowest.count() % 10, highest.count() / 10, highest.count() % 10));
  }
  const std::vector<std::size_t> used = varied_inputs(samples);
  using Fit = LearnedPower::Fit;
  Shape chosen = kShapes.front();
  std::vector<double> errors;
  for (const Shape shape : kShapes) {
    Fit probe;
    probe.form = shape.form;
    probe.used = used;
    const auto enough = static_cast<Index>(samples.size());
    if (!errors.empty() && probe.terms() * kSamplesPerTerm > enough) continue;
    auto tried = held_out<Fit>(samples, shape, used);
    if (!errors.empty() && mean_of(tried) >= mean_of(errors)) continue;
    chosen = shape;
    errors = std::move(tried);
  }
  LearnedPower out;
  out.fit_ = std::make_shared<const Fit>(fit_shape<Fit>(samples, chosen, used));
  out.samples_ = samples.size();
  out.lowest_ = lowest;
  out.highest_ = highest;
  out.error_permille_ = std::llround(1000 * mean_of(errors));
  const auto ninth = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() * 9 / 10);
  std::nth_element(errors.begin(), ninth, errors.end());
  out.bound_permille_ = std::llround(1000 * *ninth);
  return out;
}

}  // namespace kwatt::models
