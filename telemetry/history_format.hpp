#pragma once
// History rows as JSON and as CSV (docs/reference/history.md). Pure.
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/history_rows.hpp"

namespace kwatt::telemetry {

// {"kind":"samples","rows":[{…}],"truncated":false}. `truncated`: there may be older rows, the
// limit was reached.
std::string history_json(HistoryKind kind, const std::vector<HistoryRow>& rows, bool truncated);

// What history_json() wrote: for the command line. Errors: parse, with the place.
struct HistoryAnswer {
  HistoryKind kind = HistoryKind::samples;
  std::vector<HistoryRow> rows;
  bool truncated = false;
};
Result<HistoryAnswer> parse_history_json(std::string_view json);

// The header line, and one line per row; RFC 4180 quoting, but lines end with "\n". A text that a
// spreadsheet would take for a formula gets an apostrophe in front.
std::string csv_header(HistoryKind kind);
void append_csv(const HistoryRow& row, std::string& out);

// "metrics_20261120T210000Z.csv"; kinds other than samples have their own word in front.
std::string csv_name(HistoryKind kind, TimePoint time);

}  // namespace kwatt::telemetry
