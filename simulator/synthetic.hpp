#pragma once
// Jobs made from a few numbers and a seed: Poisson arrivals, over the day more or fewer, with sizes
// and durations of which a few are very large.
#include <random>

#include "simulator/workload.hpp"

namespace kwatt::simulator {

struct Synthetic {
  std::int64_t jobs = 1000;
  double per_hour = 120;  // mean arrivals
  // Arrivals follow 1 + diurnal·cos over the day with the peak at 14:00; 0: the same all day.
  double diurnal = 0.5;       // 0…1
  double mean_seconds = 600;  // of the durations: bounded Pareto of shape 1.5
  double most_seconds = 86'400;
  double most_cores = 16;   // sizes 0.25, 0.5, 1, 2 …, each half as frequent as the one before
  double gib_per_core = 4;  // memory: half to twice that, per core
  double gang_percent = 5;  // jobs of 2 to 8 tasks
  double gpu_percent = 0;   // jobs with one GPU
  double deadline_percent = 50;  // jobs with a deadline …
  double slack = 6;              // … after this many times their duration, at least an hour
};

// "jobs=2000,per-hour=300,diurnal=0.5": the members above with hyphens, each at most once. Errors:
// invalid_argument, naming what is wrong.
Result<Synthetic> parse_synthetic(std::string_view text);

// Same numbers and seed, same jobs. Names: job-1, job-2 …
class SyntheticJobs final : public JobSource {
 public:
  SyntheticJobs(Synthetic spec, std::uint64_t seed) : spec_(spec), random_(seed) {}
  Result<std::optional<Job>> next() override;

 private:
  double uniform();  // [0, 1)
  double arrival();  // seconds
  double duration();

  Synthetic spec_;
  std::mt19937_64 random_;
  std::int64_t made_ = 0;
  double seconds_ = 0;
};

}  // namespace kwatt::simulator
