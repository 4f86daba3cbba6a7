#pragma once
// The part of SQLite's C API that the history needs, with owners instead of pointers. A connection
// and its statements belong to one thread at a time.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace kwatt::telemetry {

// Errors of everything here: parse (the file is no database, or damaged), unavailable (locked by
// another process), io (disk full, not readable, …), internal (our SQL); SQLite's text is
// server_text.

class Statement {
 public:
  Statement() = default;
  // Parameters count from 1. Texts are copied.
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind_null(int parameter);
  // True: a row is there. After false or an error the statement is ready to be bound again.
  Result<bool> step();
  // To the end; rows are dropped.
  Result<void> run();
  void reset();

  // Columns count from 0.
  std::int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Database {
 public:
  enum class Mode { read_only, create };
  static Result<Database> open(const std::string& path, Mode mode);

  Result<Statement> prepare(std::string_view sql) const;
  Result<void> run(std::string_view sql) const;             // one statement without parameters
  Result<std::int64_t> number(std::string_view sql) const;  // the first column of its only row
  std::int64_t last_row_id() const;
  std::int64_t changes() const;  // rows touched by the last statement

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace kwatt::telemetry
