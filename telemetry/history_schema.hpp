#pragma once
// The tables of the history file. docs/reference/history.md shows them to users.
#include "telemetry/sqlite.hpp"

namespace kwatt::telemetry {

inline constexpr std::int64_t kHistoryVersion = 2;

// Brings an open file to kHistoryVersion, step by step, each in a transaction of its own. Errors:
// as Database; unsupported: the file was written by a newer kwatt.
Result<void> migrate_history(Database& database);

}  // namespace kwatt::telemetry
