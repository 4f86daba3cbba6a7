#pragma once
// The hourly files metrics_<hour>.csv, for tools that read folders.
#include <string>

#include "base/result.hpp"

namespace kwatt::telemetry {

// A file appears whole, under its final name, two minutes after its hour (samples come late); the
// newest kKept stay, older ones of that name are removed, nothing else in the folder is touched.
class CsvWriter {
 public:
  static constexpr std::size_t kKept = 168;  // a week

  // `history_path` is read; hours that ended before `now` are not written.
  CsvWriter(std::string history_path, std::string folder, TimePoint now);
  // Writes the files that have fallen due. A failure is logged, and tried again with the next call
  // until the hour after that is due.
  void write_due(TimePoint now);

 private:
  Result<void> write(TimePoint hour) const;
  void remove_old() const;

  std::string history_path_, folder_;
  TimePoint next_;  // hour to be written
  bool failing_ = false;
};

}  // namespace kwatt::telemetry
