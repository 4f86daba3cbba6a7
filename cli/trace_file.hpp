#pragma once
// Traces and machines by the words of the command line: opens files, finds out what is in them.
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/traces/reading.hpp"

namespace kwatt::cli {

// A trace that is being read. Jobs come as they are asked for; machines and services are there only
// where the format has them.
struct OpenTrace {
  std::string name;
  std::unique_ptr<std::ifstream> file;
  std::unique_ptr<simulator::JobSource> jobs;  // never null
  std::vector<simulator::MachineSpec> machines;
  std::vector<simulator::Service> services;
  std::optional<Duration> length;  // where the trace itself says when it ends
  std::function<simulator::traces::Report()> report;  // of the rows so far
  std::vector<std::string> notes;

  // What a person should know of it: rows left out, notes. "" or lines.
  std::string remarks() const;
};

// "trace.csv: 2 bad rows were left out" and the first of them.
std::string bad_rows_text(const std::string& name, const simulator::traces::Report& report);

// `trace`: a file, or "synthetic:…". `format`: auto, or as in --format. Errors: not_found, parse,
// invalid_argument, naming the trace.
Result<OpenTrace> open_trace(const std::string& trace, const std::string& format,
                             simulator::traces::Reading reading, std::uint64_t seed,
                             Duration job_duration);
// A file, or COUNTxCORESxGIB….
Result<std::vector<simulator::MachineSpec>> open_machines(const std::string& text);

}  // namespace kwatt::cli
