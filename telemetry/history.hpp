#pragma once
// The history of samples, decisions, operations and energy. A convenience: nothing is decided from
// it, and whatever happens to its file, the controller goes on.
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "net/client.hpp"
#include "telemetry/history_rows.hpp"

namespace kwatt::telemetry {

struct HistoryOptions {
  std::string path;
  std::int64_t max_bytes = std::int64_t{256} << 20;  // of the file with its write-ahead log
  std::string csv_dir;                               // "": no hourly CSV files
  std::size_t queue = 50'000;                        // rows that wait to be written
  Duration batch = std::chrono::seconds{1};          // rows of so long are written together
  Duration retry = std::chrono::seconds{10};         // after a failure of the disk
};

// The file is opened, written and trimmed on a thread of its own. A failure is told once in the log
// and by kwatt_history_failing until it is over; rows then wait in the queue, and those that find
// it full are dropped and counted. A damaged file is renamed aside and a new one begun.
class History {
 public:
  History(HistoryOptions options, const Clock& clock, Metrics& metrics);
  // Writes what waits, if the disk takes it at once, and ends the thread.
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // From any thread; never waits.
  void add(HistoryRow row);
  void add(std::vector<HistoryRow> rows);

  // Rows that match (read_history()), read on another thread; resumes on the caller's executor.
  // Rows of the last second or two are still on their way to the file.
  net::Task<Result<std::vector<HistoryRow>>> read(HistoryQuery query);

  // Until everything added before is written or dropped, or `at_most` is over (then false). Waits
  // on the calling thread: for tests and the bench.
  bool flush(Duration at_most);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::telemetry
