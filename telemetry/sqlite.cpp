#include "telemetry/sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

namespace kwatt::telemetry {
namespace {

// Another process may hold the file for the time of one transaction.
constexpr int kBusyMilliseconds = 2000;

Error error_of(sqlite3* handle, int code) {
  const std::string text = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fail(ErrorCode::parse, "the file is damaged, or no SQLite database", text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(ErrorCode::unavailable, "another process holds the database", text);
    case SQLITE_FULL:
      return fail(ErrorCode::io, "the disk is full", text);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return fail(ErrorCode::io, "the database cannot be read or written", text);
    default:
      return fail(ErrorCode::internal, fmt::format("SQLite error {}", code), text);
  }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(handle_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(handle_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(handle_.get(), parameter);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  Error error = error_of(sqlite3_db_handle(handle_.get()), code);
  reset();
  return error;
}

Result<void> Statement::run() {
  for (;;) {
    auto row = step();
    if (!row) return row.error();
    if (!*row) return {};
  }
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(handle_.get(), column);
  if (bytes == nullptr) return "";
  return {reinterpret_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  const int flags =
      mode == Mode::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(raw);
  if (code != SQLITE_OK) return error_of(raw, code).with_context("opening " + path);
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  sqlite3_extended_result_codes(raw, 1);
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return error_of(handle_.get(), code);
  Statement statement;
  statement.handle_.reset(raw);
  return statement;
}

Result<void> Database::run(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  return statement->run();
}

Result<std::int64_t> Database::number(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  return *row ? statement->integer(0) : 0;
}

std::int64_t Database::last_row_id() const {
  return sqlite3_last_insert_rowid(handle_.get());
}

std::int64_t Database::changes() const {
  return sqlite3_changes64(handle_.get());
}

}  // namespace kwatt::telemetry
