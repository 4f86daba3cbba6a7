#pragma once
// The least increase of power when 1, 2, … n equal workloads are placed: exact, whatever the shapes
// of the machines' curves. Pure.
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace kwatt::placement {

// Beyond what fits. JSON has no infinity: the wire says the largest double instead.
inline constexpr double kInfeasible = std::numeric_limits<double>::infinity();

// increases[k - 1]: what the node would draw more with k workloads more, compared with none of
// them. Shorter than asked: more do not fit. An entry that is not finite (NaN, too): just that many
// cannot be had there. May fall, may be negative; the unit is the caller's.
using Increases = std::vector<double>;

// result[m - 1] = min Σ increases of each node's share, over all ways to spread m workloads;
// kInfeasible where there is none. `workloads` entries, always. Exact for whole numbers below 2^53,
// else up to the rounding of sums.
//
// Nodes whose increases are convex are taken together: their marginal increases, sorted. Of the
// others, a node can matter with c workloads only if it is among the n - c + 1 that are cheapest
// with c (one of which would be free to take its place): so most need not be looked at, and a
// min-plus convolution over what is left is exact.
// Time: O(nodes × n) to look, O(n³) at most to combine; O(nodes × feasible × n) where few fit each.
std::vector<double> least_increases(std::span<const Increases> nodes, std::size_t workloads);

}  // namespace kwatt::placement
