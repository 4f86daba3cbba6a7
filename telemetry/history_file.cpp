#include "telemetry/history_file.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "telemetry/history_schema.hpp"

namespace kwatt::telemetry {
namespace {

// "kwat": this SQLite file is ours.
constexpr std::int64_t kApplicationId = 0x6b776174;
constexpr std::int64_t kKeptSampleMinutes = 120;
constexpr std::int64_t kPageBytes = 4096;

std::int64_t minutes_of(TimePoint time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}
std::int64_t hours_of(TimePoint time) {
  return std::chrono::floor<std::chrono::hours>(time.time_since_epoch()).count();
}

std::string_view cut(std::string_view text) {
  if (text.size() <= kHistoryMessageBytes) return text;
  std::size_t end = kHistoryMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

// About what a row adds to the file; only the messages differ much.
std::int64_t bytes_of(const HistoryRow& row) {
  if (const auto* d = std::get_if<DecisionRow>(&row)) {
    return 60 + static_cast<std::int64_t>(d->message.size());
  }
  if (const auto* o = std::get_if<OperationRow>(&row)) {
    return 100 + static_cast<std::int64_t>(o->message.size());
  }
  return 60;
}

// Marks a new file as ours.
Result<void> claim(const Database& database, const std::string& path) {
  auto id = database.number("PRAGMA application_id");
  if (!id) return id.error();
  auto tables = database.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  if (*tables > 0 && *id != kApplicationId) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is a database of another program: choose another path", path));
  }
  if (*id == kApplicationId) return {};
  // Counts only before the first write to the file.
  if (auto set = database.run("PRAGMA auto_vacuum = INCREMENTAL"); !set) return set;
  return database.run(fmt::format("PRAGMA application_id = {}", kApplicationId));
}

Result<void> check_whole(const Database& database) {
  auto check = database.prepare("PRAGMA quick_check(1)");
  if (!check) return check.error();
  auto row = check->step();
  if (!row) return row.error();
  const std::string word = check->text(0);
  if (word == "ok") return {};
  return fail(ErrorCode::parse, "the file is damaged", word);
}

void rename_aside(const std::string& path) {
  std::error_code ignored;
  std::filesystem::rename(path, path + ".aside", ignored);
  // They belong to the damaged file and would damage the new one.
  std::filesystem::remove(path + "-wal", ignored);
  std::filesystem::remove(path + "-shm", ignored);
}

}  // namespace

Result<HistoryFile> HistoryFile::open(const std::string& path, std::int64_t max_bytes) {
  std::string reason;
  for (int attempt = 0;; ++attempt) {
    HistoryFile file;
    file.set_aside_ = reason;
    auto database = Database::open(path, Database::Mode::create);
    Result<void> ready;
    if (!database) {
      ready = database.error();
    } else {
      file.database_ = std::move(*database);
      ready = claim(file.database_, path);
      if (ready) ready = file.prepare(max_bytes);
    }
    if (ready) return file;
    const ErrorCode code = ready.error().code;
    if (attempt > 0 || (code != ErrorCode::parse && code != ErrorCode::unsupported)) {
      return ready.error().with_context(path);
    }
    reason = ready.error().text();
    file.database_ = Database{};
    rename_aside(path);
  }
}

Result<void> HistoryFile::prepare(std::int64_t max_bytes) {
  max_bytes = std::max(max_bytes, kHistoryMinimumBytes);
  // A quarter is for the write-ahead log and for what one transaction adds before the next trim.
  page_limit_ = max_bytes / 4 * 3 / kPageBytes;
  transaction_bytes_ = max_bytes / 32;
  const std::int64_t wal_pages = std::clamp<std::int64_t>(max_bytes / 16 / kPageBytes, 16, 1000);
  const std::string settings[] = {
      "PRAGMA journal_mode = WAL",
      "PRAGMA synchronous = NORMAL",  // a power cut may lose the newest rows, never the file
      "PRAGMA secure_delete = OFF",
      "PRAGMA cache_size = -2048",
      fmt::format("PRAGMA wal_autocheckpoint = {}", wal_pages),
      fmt::format("PRAGMA journal_size_limit = {}", wal_pages * kPageBytes),
  };
  for (const std::string& setting : settings) {
    if (auto set = database_.run(setting); !set) return set;
  }
  if (auto whole = check_whole(database_); !whole) return whole;
  if (auto migrated = migrate_history(database_); !migrated) return migrated;

  struct Sql {
    Statement& statement;
    std::string_view text;
  };
  const Sql all[] = {
      {insert_sample_, "INSERT OR REPLACE INTO samples VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
      {insert_decision_,
       "INSERT INTO decisions (at, node, policy, action, reason, message) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
      {insert_operation_,
       "INSERT INTO operations (at, node, policy, operation, kind, phase, reason, message) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"},
      {add_energy_,
       "INSERT INTO energy VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
       "ON CONFLICT (hour, node, policy) DO UPDATE SET "
       "actual_mj = actual_mj + excluded.actual_mj, "
       "baseline_mj = baseline_mj + excluded.baseline_mj, "
       "covered_ms = covered_ms + excluded.covered_ms, "
       "measured_ms = measured_ms + excluded.measured_ms"},
      {find_word_, "SELECT id FROM words WHERE word = ?1"},
      {add_word_, "INSERT INTO words (word) VALUES (?1)"},
  };
  for (const Sql& one : all) {
    auto statement = database_.prepare(one.text);
    if (!statement) return statement.error();
    one.statement = std::move(*statement);
  }
  return {};
}

Result<std::int64_t> HistoryFile::word(const std::string& text) {
  const auto known = words_.find(text);
  if (known != words_.end()) return known->second;
  find_word_.bind(1, text);
  auto found = find_word_.step();
  if (!found) return found.error();
  std::int64_t id = 0;
  if (*found) {
    id = find_word_.integer(0);
    find_word_.reset();
  } else {
    if (auto added = add_word_.bind(1, text).run(); !added) return added.error();
    id = database_.last_row_id();
  }
  words_.emplace(text, id);
  return id;
}

Result<void> HistoryFile::insert(const HistoryRow& row) {
  // Names become numbers first: word() may insert rows itself.
  std::vector<std::int64_t> ids;
  const auto number = [&](std::initializer_list<std::string_view> texts) -> Result<void> {
    for (const std::string_view text : texts) {
      auto id = word(std::string(text));
      if (!id) return id.error();
      ids.push_back(*id);
    }
    return {};
  };
  if (const auto* s = std::get_if<SampleRow>(&row)) {
    if (auto done = number({s->node, s->source}); !done) return done;
    insert_sample_.bind(1, minutes_of(s->minute)).bind(2, ids[0]);
    for (const auto& [parameter, power] : {std::pair{3, s->mean}, std::pair{4, s->max}}) {
      if (power) {
        insert_sample_.bind(parameter, power->count());
      } else {
        insert_sample_.bind_null(parameter);
      }
    }
    return insert_sample_.bind(5, s->utilization.count()).bind(6, ids[1]).run();
  }
  if (const auto* d = std::get_if<DecisionRow>(&row)) {
    if (auto done = number({d->node, d->policy, d->action, d->reason}); !done) return done;
    insert_decision_.bind(1, d->at.time_since_epoch().count()).bind(2, ids[0]).bind(3, ids[1]);
    return insert_decision_.bind(4, ids[2]).bind(5, ids[3]).bind(6, cut(d->message)).run();
  }
  if (const auto* o = std::get_if<OperationRow>(&row)) {
    if (auto done = number({o->node, o->policy, o->kind, o->phase, o->reason}); !done) return done;
    insert_operation_.bind(1, o->at.time_since_epoch().count()).bind(2, ids[0]).bind(3, ids[1]);
    insert_operation_.bind(4, cut(o->id)).bind(5, ids[2]).bind(6, ids[3]).bind(7, ids[4]);
    return insert_operation_.bind(8, cut(o->message)).run();
  }
  const auto& e = std::get<EnergyRow>(row);
  if (auto done = number({e.node, e.policy}); !done) return done;
  add_energy_.bind(1, hours_of(e.hour)).bind(2, ids[0]).bind(3, ids[1]);
  add_energy_.bind(4, e.actual.count()).bind(5, e.baseline.count());
  return add_energy_.bind(6, e.covered.count()).bind(7, e.measured.count()).run();
}

Result<std::size_t> HistoryFile::append(const std::vector<HistoryRow>& rows, std::size_t from) {
  std::size_t to = from;
  const auto write = [&]() -> Result<void> {
    if (auto begun = database_.run("BEGIN IMMEDIATE"); !begun) return begun;
    for (std::int64_t bytes = 0; to < rows.size() && bytes < transaction_bytes_; ++to) {
      bytes += bytes_of(rows[to]);
      if (auto done = insert(rows[to]); !done) return done;
    }
    return database_.run("COMMIT");
  };
  auto done = write();
  if (!done) {
    (void)database_.run("ROLLBACK");  // fails where SQLite has rolled back by itself
    words_.clear();                   // some may have been rolled back
    return done.error();
  }
  if (auto trimmed = trim(); !trimmed) return trimmed.error();
  return to;
}

Result<void> HistoryFile::trim() {
  // Each round removes at least one row, or asks for a larger part.
  for (std::int64_t parts = 50;;) {
    auto pages = database_.number("PRAGMA page_count");
    auto spare = database_.number("PRAGMA freelist_count");
    if (!pages) return pages.error();
    if (!spare) return spare.error();
    if (*pages - *spare <= page_limit_) return {};
    auto gone = remove_oldest(parts);
    if (!gone) return gone.error();
    if (*gone == 0 && parts == 1) return {};  // nothing is left but the names
    if (*gone == 0) parts = std::max<std::int64_t>(1, parts / 2);
    removed_ += *gone;
    if (auto shrunk = shrink(); !shrunk) return shrunk;
  }
}

Result<std::int64_t> HistoryFile::remove_oldest(std::int64_t parts) {
  const auto removed_by = [&](const std::string& sql) -> Result<std::int64_t> {
    if (auto done = database_.run(sql); !done) return done.error();
    return database_.changes();
  };
  auto first = database_.number("SELECT min(minute) FROM samples");
  auto last = database_.number("SELECT max(minute) FROM samples");
  if (!first) return first.error();
  if (!last) return last.error();
  if (*last - *first > kKeptSampleMinutes) {
    const std::int64_t span = std::max<std::int64_t>(1, (*last - *first) / parts);
    const std::int64_t before = std::min(*first + span, *last - kKeptSampleMinutes);
    return removed_by(fmt::format("DELETE FROM samples WHERE minute < {}", before));
  }
  // In milliseconds, over all kinds.
  constexpr std::string_view kTimes =
      "SELECT minute * 60000 AS t FROM (SELECT {0}(minute) AS minute FROM samples) "
      "UNION ALL SELECT {0}(at) FROM decisions UNION ALL SELECT {0}(at) FROM operations "
      "UNION ALL SELECT hour * 3600000 FROM (SELECT {0}(hour) AS hour FROM energy)";
  auto oldest = database_.number(
      fmt::format("SELECT min(t) FROM ({})", fmt::format(fmt::runtime(kTimes), "min")));
  auto newest = database_.number(
      fmt::format("SELECT max(t) FROM ({})", fmt::format(fmt::runtime(kTimes), "max")));
  if (!oldest) return oldest.error();
  if (!newest) return newest.error();
  const std::int64_t before = *oldest + (*newest - *oldest) / parts + 1;
  std::int64_t removed = 0;
  for (const std::string& sql :
       {fmt::format("DELETE FROM samples WHERE minute * 60000 < {}", before),
        fmt::format("DELETE FROM decisions WHERE at < {}", before),
        fmt::format("DELETE FROM operations WHERE at < {}", before),
        fmt::format("DELETE FROM energy WHERE hour * 3600000 < {}", before)}) {
    auto gone = removed_by(sql);
    if (!gone) return gone.error();
    removed += *gone;
  }
  return removed;
}

// Gives free pages back to the disk, in pieces, so that the write-ahead log stays small.
Result<void> HistoryFile::shrink() {
  for (std::int64_t before = -1;;) {
    auto pages = database_.number("PRAGMA page_count");
    auto spare = database_.number("PRAGMA freelist_count");
    if (!pages) return pages.error();
    if (!spare) return spare.error();
    // Some are kept: the next rows need them.
    if (*pages <= page_limit_ || *spare == 0 || *pages == before) return {};
    before = *pages;
    const std::int64_t more = std::min<std::int64_t>({*spare, *pages - page_limit_, 256});
    if (auto done = database_.run(fmt::format("PRAGMA incremental_vacuum({})", more)); !done) {
      return done;
    }
  }
}

}  // namespace kwatt::telemetry
