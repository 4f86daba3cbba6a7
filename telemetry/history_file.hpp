#pragma once
// The history on disk: a SQLite file in WAL mode of bounded size. Written by one HistoryFile, on
// one thread; read by any number of threads through connections of their own.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "telemetry/history_rows.hpp"
#include "telemetry/sqlite.hpp"

namespace kwatt::telemetry {

inline constexpr std::int64_t kHistoryMinimumBytes = 1 << 20;

// Of the texts that come from elsewhere; what is longer is cut at a character.
inline constexpr std::size_t kHistoryMessageBytes = 1024;

class HistoryFile {
 public:
  // Opens the file, or creates it. One that is damaged, or of a newer kwatt, is renamed to
  // PATH.aside (replacing an older one), and a new one is begun; set_aside() says why. Errors: io
  // (folder missing, no right, disk full); invalid_argument: a database of another program, which
  // is left alone.
  static Result<HistoryFile> open(const std::string& path, std::int64_t max_bytes);
  const std::string& set_aside() const { return set_aside_; }  // "": nothing was wrong

  // Writes rows[from] and as many after it as are good for one transaction, then trims; the index
  // after the last one written. On error none of them is written: parse (damaged: open again), io,
  // unavailable.
  Result<std::size_t> append(const std::vector<HistoryRow>& rows, std::size_t from);
  std::int64_t removed() const { return removed_; }  // rows, by trimming, since open()

 private:
  HistoryFile() = default;
  Result<void> prepare(std::int64_t max_bytes);
  Result<void> insert(const HistoryRow& row);
  Result<std::int64_t> word(const std::string& text);
  // Removes the oldest rows until the file keeps within its bound: samples first, but for the last
  // two hours of them, then all kinds alike.
  Result<void> trim();
  Result<std::int64_t> remove_oldest(std::int64_t parts);
  Result<void> shrink();

  Database database_;
  Statement insert_sample_, insert_decision_, insert_operation_, add_energy_, find_word_, add_word_;
  std::map<std::string, std::int64_t> words_;
  std::int64_t page_limit_ = 0;
  std::int64_t transaction_bytes_ = 0;
  std::int64_t removed_ = 0;
  std::string set_aside_;
};

// The newest rows that match, oldest first. Errors: io (no such file yet), parse, unavailable;
// invalid_argument: samples have no policy.
Result<std::vector<HistoryRow>> read_history(const std::string& path, const HistoryQuery& query);

// Every sample of since ≤ minute < until, in order of time, without holding them in memory.
Result<std::int64_t> each_sample(const std::string& path, TimePoint since, TimePoint until,
                                 const std::function<void(const SampleRow&)>& visit);

}  // namespace kwatt::telemetry
