// simulate, compare: replays work through strategies and the planner, and says what it costs.
#include "cli/simulate.hpp"

#include <fstream>
#include <iostream>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "placement/strategies/registry.hpp"

namespace kwatt::cli {
namespace {

namespace report = simulator::report;

constexpr const char* kSimulateExamples =
    "  kubectl kwatt simulate examples/simulate/jobs.csv --machines 20x32x128\n"
    "  kubectl kwatt simulate synthetic:jobs=5000,per-hour=400 --machines 40x32x128 "
    "--idle-off 10m --html report.html\n"
    "  kubectl kwatt simulate --scenario examples/simulate/scenario.yaml -o json\n";
constexpr const char* kCompareExamples =
    "  kubectl kwatt compare examples/simulate/jobs.csv --machines 20x32x128 "
    "--strategies FCFS,EnergyAware,ECSched-energy --seeds 1-5 --html report.html\n"
    "  kubectl kwatt compare --scenario examples/simulate/scenario.yaml\n";

std::string table_text(const std::vector<report::Run>& runs) {
  const auto rows = report::table_of(runs);
  Table table(rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  std::string text = table.text();
  for (const report::Run& run : runs) {
    for (const simulator::Refused& refused : run.outcome.refused) {
      text += fmt::format("rejected ({}, {}, seed {}): {}: {}\n", run.strategy, run.trace, run.seed,
                          refused.name, refused.reason);
    }
    const std::uint64_t more = run.outcome.rejected - run.outcome.refused.size();
    if (more > 0) text += fmt::format("… and {} more\n", more);
  }
  return text;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) return fail(ErrorCode::io, "cannot write " + path);
  return {};
}

Result<void> write_results(const SimulateOptions& options, const std::vector<report::Run>& runs,
                           std::ostream& out) {
  if (options.output == "json") {
    out << pretty_json(report::json_of(runs));
  } else if (options.output == "csv") {
    out << report::csv_of(runs);
  } else {
    out << table_text(runs);
  }
  if (!options.metrics_csv.empty()) {
    if (auto done = write_file(options.metrics_csv, report::metrics_csv_of(runs)); !done) {
      return done;
    }
  }
  if (!options.html.empty()) {
    return write_file(options.html, report::html_of(runs, "kwatt: what strategies cost"));
  }
  return {};
}

int simulate(const CLI::App& verb, SimulateOptions& options, std::ostream& out, std::ostream& err) {
  const auto failed = [&](const Error& error) {
    err << "error: " << error.text() << "\n";
    return kFailed;
  };
  if (!options.scenario.empty()) {
    if (auto loaded = load_scenario(verb, options); !loaded) return failed(loaded.error());
  }
  const bool terminal = &err == &std::cerr && ::isatty(STDERR_FILENO) == 1 && !options.quiet;
  const auto runs = run_all(options, err, terminal);
  if (!runs) return failed(runs.error());
  if (auto written = write_results(options, *runs, out); !written) return failed(written.error());
  return kDone;
}

void add(CLI::App& app, Chosen& chosen, bool many) {
  auto options = std::make_shared<SimulateOptions>();
  if (!many) options->strategies = {"EnergyAware"};
  CLI::App* verb =
      many
          ? add_verb(app, "compare",
                     "Compare strategies on the same work: energy, CO2, waiting and disruption of "
                     "each, with confidence intervals",
                     kCompareExamples)
          : add_verb(app, "simulate",
                     "Replay work on simulated machines and print what a strategy costs in energy, "
                     "CO2, waiting and disruption",
                     kSimulateExamples);
  declare_simulate(*verb, *options, many);
  verb->callback([&chosen, options, verb] {
    chosen.tool = [options, verb](std::ostream& out, std::ostream& err) {
      return simulate(*verb, *options, out, err);
    };
  });
}

}  // namespace

void declare_simulate(CLI::App& verb, SimulateOptions& o, bool many) {
  std::string names;
  for (const auto& listed : placement::strategies::listed()) {
    names += (names.empty() ? "" : "|") + std::string(listed.name);
  }
  verb.add_option("TRACE", o.traces,
                  many
                      ? "Traces: files of jobs, or synthetic:NAME=VALUE,… (jobs, per-hour, diurnal "
                        "and others: docs/reference/traces.md)"
                      : "The trace: a file of jobs, or synthetic:NAME=VALUE,… (jobs, per-hour, "
                        "diurnal and others: docs/reference/traces.md)")
      ->expected(0, many ? 100 : 1);
  verb.add_option("--scenario", o.scenario,
                  "YAML file with any of these options, by their long names; the command line wins")
      ->type_name("FILE");
  verb.add_option("--format", o.format, "Format of trace files; auto: by name and content")
      ->check(CLI::IsMember({"auto", "csv", "swf", "ecsched", "kubectl", "slurm", "recording"})
                  .description(""))
      ->type_name("auto|csv|swf|ecsched|kubectl|slurm|recording")
      ->capture_default_str();
  verb.add_option("--machines", o.machines,
                  "The machines: a CSV file, or COUNTxCORESxGIB[xGPUS][@ZONE],… ; not needed where "
                  "the trace has machines");
  if (many) {
    verb.add_option("--strategies", o.strategies, "Strategies to compare (default: all)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name(names);
    verb.add_option("--seeds", o.seeds, "Seeds, such as 1,2,7 or 1-5; each is a run")
        ->type_name("LIST")
        ->capture_default_str();
  } else {
    verb.add_option("--strategy", o.strategies, "Where and when jobs run")
        ->expected(1)
        ->type_name(names)
        ->default_str("EnergyAware");
    verb.add_option("--seed", o.seeds, "Of synthetic jobs and of strategies that draw lots")
        ->type_name("NUMBER")
        ->capture_default_str();
  }
  verb.add_option("--policy", o.policy,
                  "EnergyPolicy (YAML): the planner of the controller acts on the machines as it "
                  "would in a cluster")
      ->type_name("FILE");
  verb.add_option("--idle-off", o.idle_off,
                  "Without --policy: switch machines off that had no work for so long, and on when "
                  "a job is placed there (default: all stay on)")
      ->type_name("DURATION");
  verb.add_option("--min-awake", o.min_awake, "With --idle-off: so many machines stay on")
      ->check(CLI::Range(0, 1'000'000).description(""))
      ->capture_default_str();
  verb.add_option("--carbon", o.carbon,
                  "Carbon intensity: [ZONE=]FILE[:COLUMN] (CSV) or [ZONE=]GRAMS per kWh; without a "
                  "zone: of all others. May be repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("ZONE=FILE");
  verb.add_option("--forecast", o.forecast,
                  "What strategies know of carbon to come: yesterday's values, or the actual ones")
      ->check(CLI::IsMember({"yesterday", "actual"}).description(""))
      ->type_name("yesterday|actual")
      ->capture_default_str();
  verb.add_option("--start", o.start, "The moment at which the trace begins")
      ->capture_default_str();
  verb.add_option(
          "--until", o.until,
          "End after so long (default: when all jobs have ended; every strategy is accounted "
          "over the time of the slowest)")
      ->type_name("DURATION");
  verb.add_option("--decide-every", o.decide_every,
                  "Ask the strategy so often; 0s: whenever work comes or room is free")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--max-delay", o.max_delay, "A job is not held back longer for low carbon")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--job-duration", o.job_duration,
                  "Of jobs whose trace does not tell (kubectl, slurm)")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--price", o.price, "Of a kilowatt-hour, for the CI-adjusted cost")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->capture_default_str();
  verb.add_option("--carbon-price", o.carbon_price, "Of a tonne of CO2, likewise")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->capture_default_str();
  verb.add_flag("--skip-bad", o.skip_bad, "Leave out rows that cannot be read, and count them");
  verb.add_option("-o,--output", o.output, "How to show the figures")
      ->check(CLI::IsMember({"table", "json", "csv"}).description(""))
      ->type_name("table|json|csv")
      ->capture_default_str();
  verb.add_option("--html", o.html, "Write a report with plots, one file")->type_name("FILE");
  verb.add_option("--schedule-csv", o.schedule_csv, "Write where each job ran")->type_name("FILE");
  verb.add_option("--metrics-csv", o.metrics_csv,
                  "Write energy and carbon by strategy, node and time")
      ->type_name("FILE");
  verb.add_flag("--no-progress", o.quiet, "No progress bar");
}

void add_simulate_verbs(CLI::App& app, Chosen& chosen) {
  add(app, chosen, false);
  add(app, chosen, true);
}

}  // namespace kwatt::cli
