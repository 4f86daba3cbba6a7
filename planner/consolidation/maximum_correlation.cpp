#include <algorithm>
#include <cmath>

#include "planner/consolidation/selection.hpp"

namespace kwatt::planner::consolidation {
namespace {

// Relative to the diagonal: what is left of a VM's variance when the others explain all of it.
constexpr double kDependent = 1e-10;

// The inverse's diagonal of a symmetric positive matrix of n × n by Gauss and Jordan; empty if it
// is singular.
std::vector<double> inverse_diagonal(std::vector<double> a, std::size_t n) {
  std::vector<double> inverse(n * n);
  for (std::size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a[k * n + k];
    if (pivot < kDependent) return {};
    for (std::size_t j = 0; j < n; ++j) {
      a[k * n + j] /= pivot;
      inverse[k * n + j] /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k];
      for (std::size_t j = 0; j < n; ++j) {
        a[i * n + j] -= factor * a[k * n + j];
        inverse[i * n + j] -= factor * inverse[k * n + j];
      }
    }
  }
  std::vector<double> diagonal(n);
  for (std::size_t i = 0; i < n; ++i) diagonal[i] = inverse[i * n + i];
  return diagonal;
}

// Correlations of the VMs' samples, n × n; empty if one of them never changed.
std::vector<double> correlations(const Draft& draft, const std::vector<std::uint32_t>& vms,
                                 std::size_t samples) {
  const std::size_t n = vms.size();
  std::vector<double> rows(n * samples);
  for (std::size_t i = 0; i < n; ++i) {
    const History& history = draft.history(vms[i]);
    double mean = 0, squares = 0;
    for (std::size_t t = 0; t < samples; ++t) mean += history[t] / static_cast<double>(samples);
    for (std::size_t t = 0; t < samples; ++t) {
      rows[i * samples + t] = history[t] - mean;
      squares += rows[i * samples + t] * rows[i * samples + t];
    }
    if (squares <= 0) return {};
    for (std::size_t t = 0; t < samples; ++t) rows[i * samples + t] /= std::sqrt(squares);
  }
  std::vector<double> found(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t t = 0; t < samples; ++t) {
        found[i * n + j] += rows[i * samples + t] * rows[j * samples + t];
      }
    }
  }
  return found;
}

}  // namespace

// R² of VM i on the others is 1 - 1 / (the i-th of the inverse correlations' diagonal).
std::uint32_t MaximumCorrelation::select(const Draft& draft, const DraftHost& host) {
  std::vector<std::uint32_t> vms;
  std::size_t samples = kHistory;
  for (const std::uint32_t v : host.vms) {
    const Vm& vm = draft.fleet().vms[v];
    if (vm.moving) continue;
    vms.push_back(v);
    samples = std::min(samples, vm.past.size());
  }
  if (vms.empty()) return kNone;
  // As many unknowns, with the constant, as VMs.
  if (samples < std::max<std::size_t>(vms.size(), 1) || samples == 0) {
    return fallback_.select(draft, host);
  }
  const std::vector<double> matrix = correlations(draft, vms, samples);
  if (matrix.empty()) return fallback_.select(draft, host);
  const std::vector<double> diagonal = inverse_diagonal(matrix, vms.size());
  if (diagonal.empty()) return fallback_.select(draft, host);
  return vms[static_cast<std::size_t>(std::max_element(diagonal.begin(), diagonal.end()) -
                                      diagonal.begin())];
}

}  // namespace kwatt::planner::consolidation
