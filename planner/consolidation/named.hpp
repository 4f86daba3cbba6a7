#pragma once
// Policies by the names that the literature gives them.
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "planner/consolidation/fleet.hpp"

namespace kwatt::planner::consolidation {

// "thr-mmt-0.8": a detector (thr, iqr, mad, lr, lrr), a selection (mmt, mu, rs, mc), and the
// detector's threshold or safety parameter; "dvfs": no migration; "kwatt": ours. The seed is that
// of rs. invalid_argument: another name, or a parameter that is not above 0 and at most 10.
Result<std::unique_ptr<Policy>> policy_named(std::string_view name, std::uint64_t seed = 1);

// Those that the literature compares, and ours.
const std::vector<std::string_view>& policy_names();

}  // namespace kwatt::planner::consolidation
