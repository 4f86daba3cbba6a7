#include <algorithm>

#include <fmt/format.h>

#include "telemetry/history_file.hpp"

namespace kwatt::telemetry {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

// Parameters of all statements: 1 since, 2 until (in the table's unit), 3 node, 4 policy, 5 limit.
constexpr std::string_view kSampleColumns =
    "SELECT s.minute, n.word, s.mean_mw, s.max_mw, s.permille, w.word ";
constexpr std::string_view kSampleNames =
    "JOIN words n ON n.id = s.node JOIN words w ON w.id = s.source ";
constexpr std::string_view kEnergyColumns =
    "SELECT e.hour, n.word, p.word, e.actual_mj, e.baseline_mj, e.covered_ms, e.measured_ms ";
constexpr std::string_view kEnergyNames =
    "JOIN words n ON n.id = e.node JOIN words p ON p.id = e.policy ";

// One node's rows of a table that is keyed by time: step by step through the times asked for.
std::string steps(std::string_view columns, std::string_view table, std::string_view time,
                  std::string_view names, std::string_view also) {
  return fmt::format(
      "WITH RECURSIVE t(at) AS (SELECT ?2 - 1 UNION ALL SELECT at - 1 FROM t WHERE at > ?1) "
      "{} FROM t CROSS JOIN {} ON {} = t.at {} WHERE t.at >= ?1 {} ORDER BY t.at DESC LIMIT ?5",
      columns, table, time, names, also);
}

std::string sql_of(HistoryKind kind, bool one_node) {
  switch (kind) {
    case HistoryKind::samples:
      if (one_node)
        return steps(kSampleColumns, "samples s", "s.node = ?3 AND s.minute", kSampleNames, "");
      return fmt::format(
          "{}FROM samples s {}WHERE s.minute >= ?1 AND s.minute < ?2 "
          "ORDER BY s.minute DESC, s.node DESC LIMIT ?5",
          kSampleColumns, kSampleNames);
    case HistoryKind::energy:
      if (one_node)
        return steps(kEnergyColumns, "energy e", "e.node = ?3 AND e.hour", kEnergyNames,
                     "AND (?4 IS NULL OR e.policy = ?4)");
      return fmt::format(
          "{}FROM energy e {}WHERE e.hour >= ?1 AND e.hour < ?2 "
          "AND (?4 IS NULL OR e.policy = ?4) "
          "ORDER BY e.hour DESC, e.node DESC, e.policy DESC LIMIT ?5",
          kEnergyColumns, kEnergyNames);
    case HistoryKind::decisions:
      return "SELECT d.at, n.word, p.word, a.word, r.word, d.message FROM decisions d "
             "JOIN words n ON n.id = d.node JOIN words p ON p.id = d.policy "
             "JOIN words a ON a.id = d.action JOIN words r ON r.id = d.reason "
             "WHERE d.at >= ?1 AND d.at < ?2 AND (?3 IS NULL OR d.node = ?3) "
             "AND (?4 IS NULL OR d.policy = ?4) ORDER BY d.at DESC, d.id DESC LIMIT ?5";
    case HistoryKind::operations:
      break;
  }
  return "SELECT o.at, n.word, p.word, o.operation, k.word, f.word, r.word, o.message "
         "FROM operations o JOIN words n ON n.id = o.node JOIN words p ON p.id = o.policy "
         "JOIN words k ON k.id = o.kind JOIN words f ON f.id = o.phase "
         "JOIN words r ON r.id = o.reason "
         "WHERE o.at >= ?1 AND o.at < ?2 AND (?3 IS NULL OR o.node = ?3) "
         "AND (?4 IS NULL OR o.policy = ?4) ORDER BY o.at DESC, o.id DESC LIMIT ?5";
}

Duration unit_of(HistoryKind kind) {
  if (kind == HistoryKind::samples) return minutes{1};
  if (kind == HistoryKind::energy) return hours{1};
  return Duration{1};
}

// Where the table begins and ends, in its unit: the steps must not run through empty years.
std::string bounds_of(HistoryKind kind, std::string_view function) {
  switch (kind) {
    case HistoryKind::samples:
      return fmt::format("SELECT {}(minute) FROM samples", function);
    case HistoryKind::energy:
      return fmt::format("SELECT {}(hour) FROM energy", function);
    case HistoryKind::decisions:
      return fmt::format("SELECT {}(at) FROM decisions", function);
    case HistoryKind::operations:
      break;
  }
  return fmt::format("SELECT {}(at) FROM operations", function);
}

std::optional<Milliwatts> power(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return Milliwatts{row.integer(column)};
}

HistoryRow row_of(HistoryKind kind, const Statement& row) {
  const TimePoint at{unit_of(kind) * row.integer(0)};
  const std::string node = row.text(1);
  switch (kind) {
    case HistoryKind::samples:
      return SampleRow{at,         node, power(row, 2), power(row, 3), Permille{row.integer(4)},
                       row.text(5)};
    case HistoryKind::decisions:
      return DecisionRow{at, node, row.text(2), row.text(3), row.text(4), row.text(5)};
    case HistoryKind::operations:
      return OperationRow{at,          node,        row.text(2), row.text(3),
                          row.text(4), row.text(5), row.text(6), row.text(7)};
    case HistoryKind::energy:
      break;
  }
  return EnergyRow{at,
                   node,
                   row.text(2),
                   Millijoules{row.integer(3)},
                   Millijoules{row.integer(4)},
                   Duration{row.integer(5)},
                   Duration{row.integer(6)}};
}

// The number of a name; 0, which no name has, if it was never seen.
Result<std::int64_t> find_word(const Database& database, std::string_view text) {
  auto find = database.prepare("SELECT id FROM words WHERE word = ?1");
  if (!find) return find.error();
  auto found = find->bind(1, text).step();
  if (!found) return found.error();
  return *found ? find->integer(0) : 0;
}

// Rounded up: a minute that began before `since` is not part of the answer.
std::int64_t in_units(TimePoint time, Duration unit) {
  const std::int64_t n = time.time_since_epoch().count(), u = unit.count();
  return n / u + (n % u > 0 ? 1 : 0);
}

}  // namespace

Result<std::vector<HistoryRow>> read_history(const std::string& path, const HistoryQuery& query) {
  if (query.kind == HistoryKind::samples && !query.policy.empty()) {
    return fail(ErrorCode::invalid_argument,
                "samples belong to no policy: ask for decisions, operations or energy");
  }
  auto database = Database::open(path, Database::Mode::read_only);
  if (!database) return database.error();
  // One moment for all statements below, whatever is written meanwhile.
  if (auto begun = database->run("BEGIN"); !begun) return begun.error();
  auto first = database->number(bounds_of(query.kind, "min"));
  auto last = database->number(bounds_of(query.kind, "max"));
  if (!first) return first.error();
  if (!last) return last.error();
  const Duration unit = unit_of(query.kind);
  const std::int64_t since = query.since ? std::max(*first, in_units(*query.since, unit)) : *first;
  const std::int64_t until =
      query.until ? std::min(*last + 1, in_units(*query.until, unit)) : *last + 1;
  std::vector<HistoryRow> rows;
  if (since >= until) return rows;

  auto statement = database->prepare(sql_of(query.kind, !query.node.empty()));
  if (!statement) return statement.error();
  statement->bind(1, since).bind(2, until).bind(5, static_cast<std::int64_t>(query.limit));
  struct Name {
    int parameter;
    const std::string& text;
  };
  for (const Name& name : {Name{3, query.node}, Name{4, query.policy}}) {
    if (name.text.empty()) continue;  // an unbound parameter is NULL
    auto id = find_word(*database, name.text);
    if (!id) return id.error();
    statement->bind(name.parameter, *id);
  }
  for (;;) {
    auto row = statement->step();
    if (!row) return row.error();
    if (!*row) break;
    rows.push_back(row_of(query.kind, *statement));
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::int64_t> each_sample(const std::string& path, TimePoint since, TimePoint until,
                                 const std::function<void(const SampleRow&)>& visit) {
  auto database = Database::open(path, Database::Mode::read_only);
  if (!database) return database.error();
  auto statement = database->prepare(fmt::format(
      "{}FROM samples s {}WHERE s.minute >= ?1 AND s.minute < ?2 ORDER BY s.minute, s.node",
      kSampleColumns, kSampleNames));
  if (!statement) return statement.error();
  statement->bind(1, in_units(since, minutes{1})).bind(2, in_units(until, minutes{1}));
  for (std::int64_t count = 0;; ++count) {
    auto row = statement->step();
    if (!row) return row.error();
    if (!*row) return count;
    visit(std::get<SampleRow>(row_of(HistoryKind::samples, *statement)));
  }
}

}  // namespace kwatt::telemetry
