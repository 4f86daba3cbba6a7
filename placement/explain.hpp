#pragma once
// A choice in words and as a table, for logs and the command line.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/framework.hpp"

namespace kwatt::placement {

// One line: the chosen target with its total, what each plugin gave it (normalized, weight, raw),
// and the runner-up with what decided. `names`: the feasible targets in the scores' order; `best` a
// position in it. "b scores 1300: EnergyIncrease 100 × 10 (5230 mW), Efficiency 100 × 3; next a
// with 1210, EnergyIncrease 91 × 10 (6010 mW)".
std::string explain_choice(std::span<const std::string_view> names, const Scores& scores,
                           std::size_t best);

// One line: how many targets each plugin excluded, most first, with the reason of one. "nothing
// fits: 3 Fit (not enough cpu: needs 4000m, 1200m free), 1 Taints (…)".
std::string explain_excluded(const Filtered& filtered);

// Targets × plugins, best first (at most `rows`), "raw → normalized × weight = weighted" in each
// cell, then the plugins that had nothing to say and why. Ends with a newline.
std::string score_table(std::span<const std::string_view> names, const Scores& scores,
                        std::size_t rows = 10);

// The names of the feasible targets, for the functions above.
template <class Target>
std::vector<std::string_view> names_of(Targets<Target> targets,
                                       std::span<const std::size_t> feasible) {
  std::vector<std::string_view> names;
  names.reserve(feasible.size());
  for (const std::size_t target : feasible) names.push_back(name_of(*targets[target]));
  return names;
}

}  // namespace kwatt::placement
