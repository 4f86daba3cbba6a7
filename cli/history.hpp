#pragma once
// What `history` asks and shows. Pure.
#include <string>

#include "cli/controller_call.hpp"
#include "telemetry/history_format.hpp"

namespace kwatt::cli {

struct HistoryOptions {
  std::string node;                // node/NAME or NAME; "": all nodes
  std::string kind = "decisions";  // a word of telemetry::kHistoryKinds
  std::string policy, since = "1h", until;
  std::size_t limit = 200;
  std::string output = "table";  // table, json or csv
  std::string out_dir;           // a CSV file there instead of the standard output
  ControllerPlace place;
};

// "/history?kind=…&…". Errors: invalid_argument: that is no node's or policy's name.
Result<std::string> history_target(const HistoryOptions& options);
// As people look at it.
std::string table_of(const telemetry::HistoryAnswer& answer);
std::string csv_of(const telemetry::HistoryAnswer& answer);

}  // namespace kwatt::cli
