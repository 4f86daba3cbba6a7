#pragma once
// What `carbon` shows of a zone's carbon intensity: the forecast, and when a job should start. Pure
// but for the file, which the caller opens.
#include <istream>
#include <string>

#include "models/carbon/intensity_csv.hpp"
#include "models/carbon/shift.hpp"

namespace kwatt::cli {

struct CarbonOptions {
  std::string zone;     // "": the only one of the file
  std::string file;     // CSV; "": a source is asked
  std::string sources;  // JSON file of carbon sources
  std::string source;   // its name there; "": the only one
  models::carbon::CsvShape shape;
  std::string at;                // a time; "": now
  std::string length = "4h";     // of the job
  std::string deadline = "24h";  // from --at until its end
  double energy_kwh = 1;
  std::string learner{models::carbon::kDefaultLearner};
  std::string output = "table";  // or json
};

struct CarbonView {
  std::string zone;
  TimePoint at;
  models::carbon::Forecast forecast;
  models::carbon::ShiftDecision decision;
  Duration length{0};
  TimePoint deadline;
  std::size_t skipped = 0;  // bad rows of the file
  std::string first_skipped;
};

// Errors: those of read_csv(); invalid_argument naming the option; not_found (no such zone in the
// file, with those there are).
Result<CarbonView> view_carbon(std::istream& in, const CarbonOptions& options, TimePoint now);
// The same of a series that is read already.
Result<CarbonView> view_series(const models::carbon::IntensitySeries& series, std::string zone,
                               const CarbonOptions& options, TimePoint now);
std::string carbon_table(const CarbonView& view);
std::string carbon_json(const CarbonView& view);

}  // namespace kwatt::cli
