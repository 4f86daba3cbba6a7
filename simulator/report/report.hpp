#pragma once
// Runs as people and programs read them: table, JSON, CSV, one HTML page. Pure text.
#include <string>
#include <vector>

#include "simulator/outcome.hpp"

namespace kwatt::simulator::report {

// One run of one strategy on one trace with one seed.
struct Run {
  std::string strategy, trace;
  std::uint64_t seed = 1;
  Outcome outcome;
};

// A figure over several seeds: its mean and half the width of the 95 % confidence interval
// (Student's t; 0 with one seed).
struct Estimate {
  double mean = 0, half_width = 0;
  std::size_t count = 0;
};
Estimate estimate(const std::vector<double>& values);

// Runs of one strategy on one trace, in the order in which they first appear.
struct Group {
  std::string strategy, trace;
  std::vector<const Run*> runs;
};
std::vector<Group> groups_of(const std::vector<Run>& runs);

// Numbers as people read them: four digits that count.
std::string number(double value);

// Lines of a table of columns: figures by strategy; the first row is the header. One trace: one
// table; more: with a column for the trace.
std::vector<std::vector<std::string>> table_of(const std::vector<Run>& runs);
// {"runs":[…],"summary":[…]}: every figure of every run, and mean and interval by group. With
// `nodes` and `timeline` as well.
std::string json_of(const std::vector<Run>& runs);
// trace,strategy,seed,<figures>
std::string csv_of(const std::vector<Run>& runs);
// The same figures seen by strategy, node and time:
// by,trace,strategy,seed,node,zone,time,energy_kwh,co2_g,average_intensity,utilization,machines_on,queued
std::string metrics_csv_of(const std::vector<Run>& runs);
// One self-contained page: no network, light and dark.
std::string html_of(const std::vector<Run>& runs, const std::string& title);

// JobID,AssignedNode,Strategy,CIscore,Timestamp: the header, and one line of it.
inline constexpr const char* kScheduleHeader = "JobID,AssignedNode,Strategy,CIscore,Timestamp\n";
std::string schedule_line(std::string_view job, std::string_view node, std::string_view strategy,
                          double grams_per_kwh, TimePoint at);
// With quotes where a field needs them.
std::string csv_field(std::string_view text);

}  // namespace kwatt::simulator::report
