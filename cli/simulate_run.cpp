// The runs of simulate and compare: opens traces, makes simulations, and carries them through.
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/policy_file.hpp"
#include "cli/simulate.hpp"
#include "cli/trace_file.hpp"
#include "placement/strategies/registry.hpp"
#include "simulator/planned.hpp"
#include "simulator/traces/intensity_csv.hpp"

namespace kwatt::cli {
namespace {

namespace report = simulator::report;
namespace strategies = placement::strategies;
namespace traces = simulator::traces;
using simulator::Simulation;

constexpr std::size_t kMostRuns = 10'000;
constexpr std::size_t kBar = 20;  // characters of the progress bar

Result<Duration> duration_of(const std::string& text, std::string_view option) {
  const auto duration = parse_go_duration(text);
  if (duration && *duration >= Duration{0}) return *duration;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("--{}: expected a duration such as 10m or 48h, got \"{}\"", option, text));
}

Result<simulator::Intensity> intensity_of(const std::string& text, const traces::Reading& reading,
                                          std::ostream& err) {
  simulator::Intensity series;
  if (auto grams = traces::number_in(text, "", 0, 5000)) {
    series.otherwise = *grams;
    return series;
  }
  std::string path = text, column;
  std::ifstream file(path, std::ios::binary);
  if (const std::size_t colon = text.rfind(':'); !file && colon != std::string::npos) {
    path = text.substr(0, colon);
    column = text.substr(colon + 1);
    file = std::ifstream(path, std::ios::binary);
  }
  if (!file) return fail(ErrorCode::not_found, fmt::format("--carbon: cannot read {}", path));
  traces::Report rows;
  auto read = traces::read_intensity(file, path, column, reading, &rows);
  if (rows.bad > 0) err << bad_rows_text(path, rows);
  return read;
}

// Settings that all runs share.
Result<simulator::Settings> settings_of(const SimulateOptions& options, std::ostream& err) {
  simulator::Settings settings;
  const auto start = parse_rfc3339(options.start);
  if (!start) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--start: expected a time such as 2026-01-05T00:00:00Z, got \"{}\"",
                            options.start));
  }
  settings.start = *start;
  settings.forecast =
      options.forecast == "actual" ? simulator::Forecast::actual : simulator::Forecast::yesterday;
  settings.prices = {options.price, options.carbon_price};
  settings.min_awake = options.min_awake;
  if (!options.idle_off.empty()) {
    auto idle = duration_of(options.idle_off, "idle-off");
    if (!idle) return idle.error();
    settings.idle_off_after = *idle;
  }
  auto every = duration_of(options.decide_every, "decide-every");
  if (!every) return every.error();
  settings.decide_every = *every;
  auto delay = duration_of(options.max_delay, "max-delay");
  if (!delay) return delay.error();
  settings.max_delay = *delay;
  for (const std::string& one : options.carbon) {
    const std::size_t equals = one.find('=');
    const std::string zone = equals == std::string::npos ? "" : one.substr(0, equals);
    const std::string what = equals == std::string::npos ? one : one.substr(equals + 1);
    auto series = intensity_of(what, {options.skip_bad}, err);
    if (!series) return series.error();
    const auto end =
        series->start + series->step * static_cast<std::int64_t>(series->grams_per_kwh.size());
    if (!series->grams_per_kwh.empty() &&
        (settings.start < series->start || settings.start >= end)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--carbon {}: the series is from {} to {}, and the simulation starts "
                              "at {}: say --start",
                              one, format_rfc3339(series->start), format_rfc3339(end),
                              format_rfc3339(settings.start)));
    }
    if (!settings.intensities.emplace(zone, std::move(*series)).second) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--carbon: zone \"{}\" is given twice", zone));
    }
  }
  return settings;
}

void warn_of_zones(const std::vector<simulator::MachineSpec>& machines,
                   const simulator::Intensities& intensities, std::ostream& err) {
  if (intensities.empty() || intensities.contains("")) return;
  std::set<std::string> unknown;
  for (const auto& machine : machines) {
    if (!intensities.contains(machine.zone)) unknown.insert(machine.zone);
  }
  for (const std::string& zone : unknown) {
    err << fmt::format("warning: zone \"{}\" has no carbon intensity: it counts as 0 g/kWh\n",
                       zone);
  }
}

class Progress {
 public:
  Progress(std::ostream& err, bool terminal, std::size_t runs)
      : err_(err), terminal_(terminal), runs_(runs) {}
  ~Progress() {
    if (terminal_) err_ << "\r\x1b[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::string what) {
    what_ = std::move(what);
    show(Duration{0}, 0);
  }
  void end() { ++done_; }
  void show(Duration simulated, std::uint64_t jobs) {
    if (!terminal_) return;
    const std::size_t filled = done_ * kBar / runs_;
    err_ << fmt::format("\r\x1b[K[{}{}] {}/{} {}: {} simulated, {} jobs", std::string(filled, '#'),
                        std::string(kBar - filled, '.'), done_ + 1, runs_, what_, human(simulated),
                        jobs)
         << std::flush;
  }

 private:
  std::ostream& err_;
  bool terminal_;
  std::size_t runs_, done_ = 0;
  std::string what_;
};

// What all runs have in common while they are made.
struct Runs {
  const SimulateOptions& options;
  simulator::Settings settings;
  std::vector<std::string> strategies;
  std::vector<std::uint64_t> seeds;
  std::vector<simulator::MachineSpec> machines;  // empty: the trace's own
  std::optional<PolicyFile> policy;
  std::optional<Duration> until;
  Duration job_duration{0};
  std::ofstream schedule;
  std::ostream& err;
  Progress& progress;
};

Result<std::unique_ptr<Simulation>> simulation_of(Runs& runs, const std::string& strategy,
                                                  std::uint64_t seed, const OpenTrace& trace) {
  strategies::Settings how;
  how.seed = seed;
  auto made = strategies::make_strategy(strategy, how);
  if (!made) return made.error();
  const auto& machines = runs.machines.empty() ? trace.machines : runs.machines;
  if (machines.empty()) {
    return fail(ErrorCode::invalid_argument, "the trace has no machines: say --machines");
  }
  auto simulation = Simulation::create(machines, std::move(*made), runs.settings);
  if (!simulation) return simulation.error();
  if (auto added = (*simulation)->add(trace.services); !added) return added.error();
  if (runs.policy) {
    auto planned = simulator::make_planned(**simulation, runs.policy->name, runs.policy->spec);
    if (!planned) return planned.error().with_context(runs.options.policy);
    (*simulation)->set_controller(std::move(*planned));
  }
  if (runs.schedule.is_open()) {
    (*simulation)->on_started([&runs](const simulator::Started& started) {
      runs.schedule << report::schedule_line(started.job, started.machine, started.strategy,
                                             started.grams_per_kwh, started.at);
    });
  }
  (*simulation)->on_progress([&runs](Duration simulated, std::uint64_t jobs) {
    runs.progress.show(simulated, jobs);
    return true;
  });
  return simulation;
}

// All strategies on one trace with one seed, accounted over the same time.
Result<void> run_strategies(Runs& runs, const std::string& trace, std::uint64_t seed, bool first,
                            std::vector<report::Run>& results) {
  std::vector<std::unique_ptr<Simulation>> simulations;
  Duration end{0};
  for (const std::string& strategy : runs.strategies) {
    runs.progress.begin(fmt::format("{} on {}, seed {}", strategy, trace, seed));
    auto open =
        open_trace(trace, runs.options.format, {runs.options.skip_bad}, seed, runs.job_duration);
    if (!open) return open.error();
    auto simulation = simulation_of(runs, strategy, seed, *open);
    if (!simulation) return simulation.error();
    const auto& machines = runs.machines.empty() ? open->machines : runs.machines;
    if (first && simulations.empty()) warn_of_zones(machines, runs.settings.intensities, runs.err);
    const auto until = runs.until ? runs.until : open->length;
    if (auto done = (*simulation)->run(*open->jobs, until); !done) return done;
    if ((*simulation)->elapsed() == Duration{0} && !open->services.empty()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: nothing in it ends: say --until", trace));
    }
    if (first && simulations.empty()) runs.err << open->remarks();
    if ((*simulation)->elapsed() == Duration{0} && (*simulation)->outcome().submitted == 0) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: there is no job in it, and nothing else to simulate", trace));
    }
    end = std::max(end, (*simulation)->elapsed());
    simulations.push_back(std::move(*simulation));
    runs.progress.end();
  }
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    if (auto done = simulations[i]->run_until(end); !done) return done;
    results.push_back({runs.strategies[i], trace, seed, simulations[i]->outcome()});
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text) {
  std::vector<std::uint64_t> seeds;
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("seeds: expected numbers such as 1,2,7 or 1-5, at most {} of them, got "
                            "\"{}\"",
                            kMostRuns, text));
  };
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    const std::size_t dash = word.find('-');
    const auto first = traces::number_in(word.substr(0, dash), "", 0, 1e15);
    const auto last =
        dash == std::string::npos ? first : traces::number_in(word.substr(dash + 1), "", 0, 1e15);
    if (!first || !last || *last < *first || *last - *first >= kMostRuns) return wrong();
    for (auto seed = static_cast<std::uint64_t>(*first); seed <= static_cast<std::uint64_t>(*last);
         ++seed) {
      seeds.push_back(seed);
    }
    if (seeds.size() > kMostRuns) return wrong();
  }
  return seeds;
}

Result<std::vector<report::Run>> run_all(const SimulateOptions& options, std::ostream& err,
                                         bool terminal) {
  if (options.traces.empty()) {
    return fail(ErrorCode::invalid_argument,
                "there is no trace: name a file of jobs, or synthetic:jobs=1000");
  }
  if (!options.policy.empty() && !options.idle_off.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--policy and --idle-off: only one of them can switch machines");
  }
  auto settings = settings_of(options, err);
  if (!settings) return settings.error();
  auto seeds = parse_seeds(options.seeds);
  if (!seeds) return seeds.error();
  std::vector<std::string> names = options.strategies;
  if (names.empty()) {
    for (const auto& listed : strategies::listed()) names.emplace_back(listed.name);
  }
  Progress progress(err, terminal, names.size() * options.traces.size() * seeds->size());
  Runs runs{options, std::move(*settings), {}, std::move(*seeds), {}, {}, {}, {}, {}, err,
            progress};
  for (const std::string& name : names) {
    // As the registry writes it, so that tables do not depend on how it was typed.
    auto strategy = strategies::make_strategy(name);
    if (!strategy) return strategy.error();
    runs.strategies.emplace_back((*strategy)->name());
  }
  if (!options.machines.empty()) {
    auto machines = open_machines(options.machines);
    if (!machines) return machines.error();
    runs.machines = std::move(*machines);
  }
  if (!options.policy.empty()) {
    auto policy = read_policy(options.policy);
    if (!policy) return policy.error();
    runs.policy = std::move(*policy);
  }
  if (!options.until.empty()) {
    auto until = duration_of(options.until, "until");
    if (!until) return until.error();
    runs.until = *until;
  }
  auto job_duration = duration_of(options.job_duration, "job-duration");
  if (!job_duration) return job_duration.error();
  runs.job_duration = *job_duration;
  if (!options.schedule_csv.empty()) {
    runs.schedule.open(options.schedule_csv, std::ios::binary);
    runs.schedule << report::kScheduleHeader;
    if (!runs.schedule) return fail(ErrorCode::io, "cannot write " + options.schedule_csv);
  }
  std::vector<report::Run> results;
  for (const std::string& trace : options.traces) {
    for (const std::uint64_t seed : runs.seeds) {
      auto done = run_strategies(runs, trace, seed, seed == runs.seeds.front(), results);
      if (!done) return done.error();
    }
  }
  if (runs.schedule.is_open()) {
    runs.schedule.flush();
    if (!runs.schedule) return fail(ErrorCode::io, "cannot write " + options.schedule_csv);
  }
  return results;
}

}  // namespace kwatt::cli
