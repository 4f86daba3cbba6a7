#pragma once
// Carbon intensities as CSV: a header that names the columns, then one row for each zone and time.
//
//   time,zone,gramsPerKWh
//   2026-11-20T21:00:00Z,DE,312.5
//
// Times are RFC 3339, "2026-11-20 21:00:00" (UTC) or Unix seconds. The zone column may be missing.
// Values may be missing ("" , "NaN", "null"): a gap. Files of Electricity Maps, of Let's Wait
// Awhile and of others are read by naming their columns. Pure: the caller opens the file.
#include <istream>
#include <map>
#include <string>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::models::carbon {

struct CsvShape {
  std::string time = "time";
  std::string value = "gramsPerKWh";
  std::string zone = "zone";  // a header without it: all rows are of one zone, ""
  Duration step{0};           // 0: the smallest distance of two rows of a zone
  bool skip_bad = false;      // count bad rows instead of refusing the file
};

struct CsvIntensities {
  std::map<std::string, IntensitySeries, std::less<>> zones;
  std::size_t skipped = 0;    // bad rows, with skip_bad
  std::string first_skipped;  // what was wrong with the first; "": none
};

// `name` of the file, for messages. Reads line by line; a line is at most 4 KiB.
// Errors: parse, with "name:line: " and what was expected: no such column, a time that is none or
// does not grow, a value that is no number, negative or beyond any electricity's, a time off the
// grid of steps; io when `in` fails.
Result<CsvIntensities> read_csv(std::istream& in, const std::string& name,
                                const CsvShape& shape = {});

// RFC 3339, "YYYY-MM-DD HH:MM[:SS]" or "YYYY-MM-DDTHH:MM[Z]" as UTC, or Unix seconds. nullopt: none
// of them.
std::optional<TimePoint> parse_time(std::string_view text);

}  // namespace kwatt::models::carbon
