#include "telemetry/history_schema.hpp"

#include <fmt/format.h>

namespace kwatt::telemetry {
namespace {

// Names are stored once (words). Samples and energy are keyed by time first, so that writing
// appends and removing the oldest frees whole pages; one node's rows are found by stepping through
// the minutes or hours asked for. Times: samples in minutes, energy in hours, the rest in
// milliseconds, all since 1970 UTC.
constexpr std::string_view kVersion1[] = {
    "CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE)",
    R"(CREATE TABLE samples (minute INTEGER NOT NULL, node INTEGER NOT NULL, mean_mw INTEGER,
         max_mw INTEGER, permille INTEGER NOT NULL, source INTEGER NOT NULL,
         PRIMARY KEY (minute, node)) WITHOUT ROWID)",
    R"(CREATE TABLE decisions (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, node INTEGER NOT NULL,
         policy INTEGER NOT NULL, action INTEGER NOT NULL, reason INTEGER NOT NULL,
         message TEXT NOT NULL))",
    R"(CREATE TABLE operations (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, node INTEGER NOT NULL,
         policy INTEGER NOT NULL, operation TEXT NOT NULL, kind INTEGER NOT NULL,
         phase INTEGER NOT NULL, reason INTEGER NOT NULL, message TEXT NOT NULL))",
    R"(CREATE TABLE energy (hour INTEGER NOT NULL, node INTEGER NOT NULL, policy INTEGER NOT NULL,
         actual_mj INTEGER NOT NULL, baseline_mj INTEGER NOT NULL, covered_ms INTEGER NOT NULL,
         measured_ms INTEGER NOT NULL, PRIMARY KEY (hour, node, policy)) WITHOUT ROWID)",
};
// Asking and removing by time without reading whole tables.
constexpr std::string_view kVersion2[] = {
    "CREATE INDEX decisions_at ON decisions (at)",
    "CREATE INDEX operations_at ON operations (at)",
};

template <std::size_t N>
Result<void> step(Database& database, std::int64_t version, const std::string_view (&sql)[N]) {
  if (auto begun = database.run("BEGIN IMMEDIATE"); !begun) return begun;
  for (const std::string_view statement : sql) {
    if (auto done = database.run(statement); !done) {
      (void)database.run("ROLLBACK");
      return done.error().with_context(fmt::format("to version {}", version));
    }
  }
  auto set = database.run(fmt::format("PRAGMA user_version = {}", version));
  if (set) set = database.run("COMMIT");
  if (!set) (void)database.run("ROLLBACK");
  return set;
}

}  // namespace

Result<void> migrate_history(Database& database) {
  auto version = database.number("PRAGMA user_version");
  if (!version) return version.error();
  if (*version > kHistoryVersion) {
    return fail(ErrorCode::unsupported,
                fmt::format("the history is of version {}, this kwatt knows {}", *version,
                            kHistoryVersion));
  }
  if (*version < 1) {
    if (auto done = step(database, 1, kVersion1); !done) return done;
  }
  if (*version < 2) {
    if (auto done = step(database, 2, kVersion2); !done) return done;
  }
  return {};
}

}  // namespace kwatt::telemetry
