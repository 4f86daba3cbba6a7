#pragma once
// All strategies by name, for the command line, the live queue and documentation.
#include <memory>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "placement/strategies/strategy.hpp"

namespace kwatt::placement::strategies {

struct Listed {
  std::string_view name;       // as users type it; also without regard to case and hyphens
  std::string_view optimizes;  // a sentence without a final period
  std::string_view paper;      // where it comes from
};

// In the order of the documentation.
std::span<const Listed> listed();

// Errors: invalid_argument for a name that is no strategy (all names are listed).
Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                const Settings& settings = {});

// One batch on a cluster of its own: `nodes` with what runs on them already taken from `capacity`
// by the caller's start() calls, or empty. Pure. Errors: of make_strategy().
Result<Decision> decide_once(std::string_view strategy, const Batch& batch, Cluster cluster,
                             const Settings& settings = {});

}  // namespace kwatt::placement::strategies
