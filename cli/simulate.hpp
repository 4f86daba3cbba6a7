#pragma once
// What `simulate` and `compare` ask and do; see simulate.cpp for the verbs.
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simulator/report/report.hpp"
#include "simulator/simulation.hpp"

namespace kwatt::cli {

struct SimulateOptions {
  std::vector<std::string> traces;      // files, or "synthetic:…"
  std::string format = "auto";          // of trace files
  std::string machines;                 // file, or COUNTxCORESxGIB…
  std::vector<std::string> strategies;  // names of placement/strategies/registry.hpp
  std::string seeds = "1";              // "1,2,5" or "1-5"
  std::vector<std::string> carbon;      // [ZONE=]FILE[:COLUMN] or [ZONE=]GRAMS
  std::string forecast = "yesterday";
  std::string start = "2026-01-05T00:00:00Z";
  std::string idle_off, until, decide_every = "0s", max_delay = "24h", job_duration = "1h";
  std::int64_t min_awake = 0;
  std::string policy;  // EnergyPolicy file: the planner of the controller acts on the machines
  double price = 0.15, carbon_price = 80;
  bool skip_bad = false, quiet = false;
  std::string scenario;
  std::string output = "table", html, schedule_csv, metrics_csv;
};

// Options of `verb`; `many`: those of compare.
void declare_simulate(CLI::App& verb, SimulateOptions& options, bool many);
// Fills from a scenario file what the command line did not say (keys: the options' long names, and
// traces). Paths in it count from its folder. Errors: not_found, parse, with the place.
Result<void> load_scenario(const CLI::App& verb, SimulateOptions& options);

// "1-3,7" → 1 2 3 7. Errors: invalid_argument.
Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text);

// All runs: strategies × traces × seeds, each trace and seed the same work for every strategy, and
// accounted over the same time. `progress` goes to a person's terminal. Warnings go to `err`.
// Errors: with the file or option they are about.
Result<std::vector<simulator::report::Run>> run_all(const SimulateOptions& options,
                                                    std::ostream& err, bool terminal);

}  // namespace kwatt::cli
