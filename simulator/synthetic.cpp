#include "simulator/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "simulator/traces/reading.hpp"
#include "simulator/traces/units.hpp"

namespace kwatt::simulator {
namespace {

constexpr double kDaySeconds = 86'400, kPeakSeconds = 14 * 3600.0;
constexpr double kShape = 1.5;  // of the Pareto distribution of durations
constexpr double kLeastCores = 0.25;

struct Setting {
  std::string_view name;
  double Synthetic::*member;
  double least, most;
};
constexpr std::array<Setting, 10> kSettings = {{
    {"per-hour", &Synthetic::per_hour, 0.001, 1e8},
    {"diurnal", &Synthetic::diurnal, 0, 1},
    {"mean-seconds", &Synthetic::mean_seconds, 1, 1e8},
    {"most-seconds", &Synthetic::most_seconds, 1, 1e9},
    {"most-cores", &Synthetic::most_cores, kLeastCores, 1024},
    {"gib-per-core", &Synthetic::gib_per_core, 0, 1024},
    {"gang-percent", &Synthetic::gang_percent, 0, 100},
    {"gpu-percent", &Synthetic::gpu_percent, 0, 100},
    {"deadline-percent", &Synthetic::deadline_percent, 0, 100},
    {"slack", &Synthetic::slack, 1, 1e6},
}};
constexpr double kMostJobs = 1e9;

}  // namespace

Result<Synthetic> parse_synthetic(std::string_view text) {
  Synthetic spec;
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("synthetic jobs: \"{}\" is given twice", name));
    }
    seen.push_back(name);
    if (name == "jobs") {
      auto count = traces::number_in(value, "synthetic jobs: jobs", 1, kMostJobs);
      if (!count) return fail(ErrorCode::invalid_argument, count.error().message);
      spec.jobs = traces::rounded(*count);
      continue;
    }
    const auto* setting = std::find_if(kSettings.begin(), kSettings.end(),
                                       [&](const Setting& s) { return s.name == name; });
    if (setting == kSettings.end()) {
      std::string known = "jobs";
      for (const Setting& s : kSettings) known += fmt::format(", {}", s.name);
      return fail(ErrorCode::invalid_argument,
                  fmt::format("synthetic jobs: there is no \"{}\"; known are: {}", name, known));
    }
    auto number = traces::number_in(value, fmt::format("synthetic jobs: {}", name), setting->least,
                                    setting->most);
    if (!number) return fail(ErrorCode::invalid_argument, number.error().message);
    spec.*(setting->member) = *number;
  }
  if (spec.most_seconds < spec.mean_seconds) {
    return fail(ErrorCode::invalid_argument,
                "synthetic jobs: most-seconds must not be below mean-seconds");
  }
  return spec;
}

double SyntheticJobs::uniform() {
  return static_cast<double>(random_() >> 11U) * 0x1.0p-53;
}

// A Poisson process whose rate changes, by thinning one of the highest rate (Lewis & Shedler 1979).
double SyntheticJobs::arrival() {
  const double peak = spec_.per_hour / 3600 * (1 + spec_.diurnal);
  while (true) {
    seconds_ += -std::log1p(-uniform()) / peak;
    const double angle = 2 * M_PI * (seconds_ - kPeakSeconds) / kDaySeconds;
    const double rate = spec_.per_hour / 3600 * (1 + spec_.diurnal * std::cos(angle));
    if (uniform() * peak < rate) return seconds_;
  }
}

// Pareto with the wanted mean as if it were unbounded; what exceeds the bound is the bound.
double SyntheticJobs::duration() {
  const double least = spec_.mean_seconds * (kShape - 1) / kShape;
  return std::min(spec_.most_seconds, least * std::pow(1 - uniform(), -1 / kShape));
}

Result<std::optional<Job>> SyntheticJobs::next() {
  if (made_ == spec_.jobs) return std::optional<Job>{};
  Job job;
  job.name = fmt::format("job-{}", ++made_);
  job.arrival = traces::seconds_of(arrival());
  job.duration = std::max(Duration{1}, traces::seconds_of(duration()));
  double cores = kLeastCores;
  while (cores * 2 <= spec_.most_cores && uniform() < 0.5) cores *= 2;
  const double gib = cores * spec_.gib_per_core * std::exp2(2 * uniform() - 1);
  const bool gpu = uniform() * 100 < spec_.gpu_percent;
  job.need = traces::amount_of(cores, gib * 1024, gpu ? 1 : 0);
  // The same draws whatever the shares: a change of one setting leaves the others' jobs alone.
  const double gang = uniform(), tasks = uniform(), deadline = uniform();
  if (gang * 100 < spec_.gang_percent) job.tasks = 2 + static_cast<std::int32_t>(tasks * 7);
  if (deadline * 100 < spec_.deadline_percent) {
    const auto slack =
        Duration{traces::rounded(static_cast<double>(job.duration.count()) * spec_.slack)};
    job.deadline = job.arrival + std::max<Duration>(std::chrono::hours{1}, slack);
  }
  return std::optional<Job>{std::move(job)};
}

}  // namespace kwatt::simulator
