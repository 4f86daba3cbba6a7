#pragma once
// One maker for each strategy; registry.cpp puts names to them.
#include <memory>

#include "placement/strategies/strategy.hpp"

namespace kwatt::placement::strategies {

std::unique_ptr<Strategy> make_default(const Settings& settings);
std::unique_ptr<Strategy> make_default_round_robin(const Settings& settings);
std::unique_ptr<Strategy> make_fcfs(const Settings& settings);
std::unique_ptr<Strategy> make_round_robin(const Settings& settings);
std::unique_ptr<Strategy> make_min_min(const Settings& settings);
std::unique_ptr<Strategy> make_max_min(const Settings& settings);
std::unique_ptr<Strategy> make_energy_aware(const Settings& settings);
std::unique_ptr<Strategy> make_ecsched(const Settings& settings);
std::unique_ptr<Strategy> make_ecsched_energy(const Settings& settings);
std::unique_ptr<Strategy> make_carbon_aware(const Settings& settings);
std::unique_ptr<Strategy> make_least_allocated(const Settings& settings);
std::unique_ptr<Strategy> make_most_allocated(const Settings& settings);
std::unique_ptr<Strategy> make_best_fit(const Settings& settings);
std::unique_ptr<Strategy> make_gpu_fill(const Settings& settings);

}  // namespace kwatt::placement::strategies
