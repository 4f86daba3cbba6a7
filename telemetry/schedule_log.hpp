#pragma once
// schedule_log.csv: one line for each job that was started (JobID, AssignedNode, Strategy, CIscore,
// Timestamp), as earlier tools of this field write it.
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace kwatt::telemetry {

struct ScheduleLine {
  std::string job, node, strategy;
  double grams_per_kwh = -1;  // CIscore; negative: not known, the field is empty
  TimePoint at;
};

inline constexpr std::string_view kScheduleHeader =
    "JobID,AssignedNode,Strategy,CIscore,Timestamp\n";

// Quoted as history CSV is; ends with "\n". Pure.
std::string schedule_line(const ScheduleLine& line);

// Appends to a file, with the header where it is new. Beyond kMostBytes the file becomes PATH.1
// (the one before it is gone) and a new one begins. Single-threaded; writes at once.
class ScheduleLog {
 public:
  static constexpr std::int64_t kMostBytes = 64 << 20;
  explicit ScheduleLog(std::string path) : path_(std::move(path)) {}
  // Errors: io, naming the file.
  Result<void> add(const ScheduleLine& line);

 private:
  std::string path_;
};

}  // namespace kwatt::telemetry
