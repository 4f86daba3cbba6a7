#include "telemetry/history.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "telemetry/history_csv.hpp"
#include "telemetry/history_file.hpp"

namespace kwatt::telemetry {

struct History::Impl {
  Impl(HistoryOptions given, const Clock& the_clock, Metrics& the_metrics)
      : options(std::move(given)), clock(the_clock), metrics(the_metrics) {
    show_failing(false);
    worker = std::thread([this] { work(); });
  }

  HistoryOptions options;
  const Clock& clock;
  Metrics& metrics;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<HistoryRow> queue;  // guarded by mutex, as are the next three
  bool stopping = false;
  std::uint64_t added = 0, settled = 0;  // rows: accepted into the queue; written or given up

  // Of the worker's thread alone.
  std::optional<HistoryFile> file;
  std::vector<HistoryRow> batch;
  std::size_t done = 0;  // of batch
  std::int64_t removed = 0;
  bool failing = false;
  std::optional<CsvWriter> csv;

  boost::asio::thread_pool readers{1};
  std::thread worker;

  void work();
  bool open();
  bool write_batch();
  void failed(const Error& error);
  void recovered();
  void settle(std::size_t rows);
  void show_failing(bool now) {
    metrics.set("kwatt_history_failing", "1 while the history cannot be written.", {}, now ? 1 : 0);
  }
  void count_dropped(const char* reason, std::size_t rows) {
    metrics.add("kwatt_history_dropped_rows_total", "History rows that were not written.",
                {{"reason", reason}}, static_cast<double>(rows));
  }
};

void History::Impl::failed(const Error& error) {
  if (!failing) {
    log::warn("the history cannot be written; decisions do not depend on it",
              {{"file", options.path}, {"error", error}});
    show_failing(true);
  }
  failing = true;
}

void History::Impl::recovered() {
  if (!failing) return;
  log::info("the history is written again", {{"file", options.path}});
  show_failing(false);
  failing = false;
}

void History::Impl::settle(std::size_t rows) {
  {
    const std::lock_guard lock(mutex);
    settled += rows;
  }
  changed.notify_all();
}

bool History::Impl::open() {
  auto opened = HistoryFile::open(options.path, options.max_bytes);
  if (!opened) {
    failed(opened.error());
    return false;
  }
  if (!opened->set_aside().empty()) {
    log::warn("the history could not be read: renamed aside, a new one is begun",
              {{"file", options.path},
               {"aside", options.path + ".aside"},
               {"reason", opened->set_aside()}});
    metrics.add("kwatt_history_set_aside_total", "History files that were renamed aside.", {});
  }
  file.emplace(std::move(*opened));
  removed = 0;
  return true;
}

// True: everything of the batch is written.
bool History::Impl::write_batch() {
  const std::size_t before = done;
  while (done < batch.size()) {
    auto next = file->append(batch, done);
    if (!next) {
      failed(next.error());
      settle(done - before);
      // Damaged while it was open: opened again, it is looked at and renamed aside.
      if (next.error().code == ErrorCode::parse) file.reset();
      return false;
    }
    metrics.add("kwatt_history_rows_total", "History rows written.", {},
                static_cast<double>(*next - done));
    done = *next;
    if (file->removed() > removed) {
      metrics.add("kwatt_history_removed_rows_total",
                  "History rows removed to keep the file within its bound.", {},
                  static_cast<double>(file->removed() - removed));
      removed = file->removed();
    }
  }
  recovered();
  settle(done - before);  // last: whoever waits for the rows sees that they could be written
  return true;
}

void History::Impl::work() {
  if (!options.csv_dir.empty()) csv.emplace(options.path, options.csv_dir, clock.now());
  (void)open();  // so that it can be read before the first row comes
  for (;;) {
    bool ending = false;
    {
      std::unique_lock lock(mutex);
      if (done == batch.size()) {
        changed.wait_for(lock, options.retry, [this] { return stopping || !queue.empty(); });
        // Rows that come together are written together.
        if (!stopping) changed.wait_for(lock, options.batch, [this] { return stopping; });
        batch.clear();
        done = 0;
        batch.swap(queue);
      }
      ending = stopping;
    }
    const bool good = (file || open()) && write_batch();
    if (csv && good) csv->write_due(clock.now());
    if (good && !ending) continue;
    std::unique_lock lock(mutex);
    if (ending) {
      const std::size_t left = batch.size() - done + queue.size();
      if (good && queue.empty()) return;
      if (good) continue;  // what came meanwhile
      if (left > 0) count_dropped("shutdown", left);
      settled += left;
      return;
    }
    changed.wait_for(lock, options.retry, [this] { return stopping; });
  }
}

namespace {

// Owns its arguments: whoever waits for the answer may be gone before it comes.
net::Task<Result<std::vector<HistoryRow>>> read_here(std::string path, HistoryQuery query) {
  co_return read_history(path, query);
}

}  // namespace

History::History(HistoryOptions options, const Clock& clock, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), clock, metrics)) {}

History::~History() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->worker.join();
  impl_->readers.join();
}

void History::add(HistoryRow row) {
  std::vector<HistoryRow> rows;
  rows.push_back(std::move(row));
  add(std::move(rows));
}

void History::add(std::vector<HistoryRow> rows) {
  std::size_t taken = 0;
  {
    const std::lock_guard lock(impl_->mutex);
    const std::size_t room =
        impl_->options.queue - std::min(impl_->options.queue, impl_->queue.size());
    taken = std::min(room, rows.size());
    for (std::size_t i = 0; i < taken; ++i) impl_->queue.push_back(std::move(rows[i]));
    impl_->added += taken;
  }
  if (taken > 0) impl_->changed.notify_all();
  if (taken < rows.size()) impl_->count_dropped("queue_full", rows.size() - taken);
}

net::Task<Result<std::vector<HistoryRow>>> History::read(HistoryQuery query) {
  co_return co_await boost::asio::co_spawn(
      impl_->readers, read_here(impl_->options.path, std::move(query)), boost::asio::use_awaitable);
}

bool History::flush(Duration at_most) {
  std::unique_lock lock(impl_->mutex);
  const std::uint64_t want = impl_->added;
  return impl_->changed.wait_for(lock, at_most, [&] { return impl_->settled >= want; });
}

}  // namespace kwatt::telemetry
