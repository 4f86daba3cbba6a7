#include "models/carbon/intensity_csv.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace kwatt::models::carbon {
namespace {

constexpr std::size_t kLongestLine = 4096, kMostRows = 5'000'000, kMostZones = 10'000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\"";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Cells of this format hold no commas; quotes around them are dropped.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

struct Row {
  Reading reading;
  std::size_t line = 0;
};

struct Reader {
  std::istream& in;
  const std::string& name;
  const CsvShape& shape;
  std::size_t line = 0;
  std::string text = {};
  CsvIntensities out = {};
  std::map<std::string, std::vector<Row>, std::less<>> rows = {};

  Error bad(std::size_t at, const std::string& why) const {
    return fail(ErrorCode::parse, fmt::format("{}:{}: {}", name, at, why));
  }
  // Ends the reading, or counts the row.
  Result<void> refuse(std::size_t at, const std::string& why) {
    Error error = bad(at, why);
    if (!shape.skip_bad) return error;
    if (out.skipped++ == 0) out.first_skipped = error.message;
    return {};
  }
  // False at the end of the file.
  Result<bool> next_line() {
    text.clear();
    for (char c = 0; in.get(c);) {
      if (c == '\n') {
        ++line;
        return true;
      }
      text.push_back(c);
      if (text.size() > kLongestLine) {
        return bad(line + 1, fmt::format("a line of more than {} bytes is no CSV", kLongestLine));
      }
    }
    if (in.bad()) return fail(ErrorCode::io, fmt::format("cannot read {}", name));
    if (text.empty()) return false;
    ++line;
    return true;
  }
  Result<void> read_rows();
  Result<void> read_row(std::size_t time, std::size_t value, std::size_t zone);
  Result<void> make_series(const std::string& zone, const std::vector<Row>& found);
};

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

Result<void> Reader::read_row(std::size_t time, std::size_t value, std::size_t zone) {
  const auto cells = cells_of(text);
  const std::size_t wanted = std::max({time, value, zone == kNone ? 0 : zone}) + 1;
  if (cells.size() < wanted) {
    return refuse(line, fmt::format("{} cells, at least {} are expected", cells.size(), wanted));
  }
  const auto at = parse_time(cells[time]);
  if (!at) {
    return refuse(line, fmt::format("\"{}\" is no time such as 2026-11-20T21:00:00Z", cells[time]));
  }
  const std::string_view number = cells[value];
  if (number.empty() || number == "NaN" || number == "nan" || number == "null") return {};
  double grams = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), grams);
  if (error != std::errc{} || end != number.data() + number.size()) {
    return refuse(line, fmt::format("\"{}\" is no number of grams per kWh", number));
  }
  if (const auto problem = grams_problem(grams); !problem.empty()) {
    return refuse(line, fmt::format("carbon intensity {}: {}", number, problem));
  }
  const std::string_view of = zone == kNone ? std::string_view{} : cells[zone];
  auto found = rows.find(of);
  if (found == rows.end()) {
    if (rows.size() == kMostZones) {
      return bad(line, fmt::format("more than {} zones", kMostZones));
    }
    found = rows.emplace(std::string(of), std::vector<Row>()).first;
  }
  auto& all = found->second;
  if (!all.empty() && *at <= all.back().reading.at) {
    return refuse(line, fmt::format("{} is not after {} of line {}", format_rfc3339(*at),
                                    format_rfc3339(all.back().reading.at), all.back().line));
  }
  all.push_back({{*at, grams}, line});
  return {};
}

Result<void> Reader::read_rows() {
  auto header = next_line();
  if (!header) return header.error();
  if (!*header) return bad(1, "the file is empty, a header is expected");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // the mark that Excel writes
  const auto names = cells_of(text);
  const auto column = [&](const std::string& wanted) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    return found == names.end() ? kNone : static_cast<std::size_t>(found - names.begin());
  };
  for (const std::string* wanted : {&shape.time, &shape.value}) {
    if (column(*wanted) == kNone) {
      return bad(1, fmt::format("no column \"{}\"; there are: {}", *wanted, text));
    }
  }
  const std::size_t time = column(shape.time), value = column(shape.value);
  const std::size_t zone = shape.zone.empty() ? kNone : column(shape.zone);
  while (true) {
    auto more = next_line();
    if (!more) return more.error();
    if (!*more) return {};
    if (line > kMostRows) return bad(line, fmt::format("more than {} rows", kMostRows));
    if (trimmed(text).empty()) continue;
    if (auto done = read_row(time, value, zone); !done) return done;
  }
}

Result<void> Reader::make_series(const std::string& zone, const std::vector<Row>& found) {
  Duration step = shape.step;
  if (step <= Duration{0}) {
    step = std::chrono::hours{1};
    for (std::size_t i = 1; i < found.size(); ++i) {
      const Duration distance = found[i].reading.at - found[i - 1].reading.at;
      step = i == 1 ? distance : std::min(step, distance);
    }
  }
  std::vector<Reading> readings;
  readings.reserve(found.size());
  for (const Row& row : found) {
    const Duration since = row.reading.at - found.front().reading.at;
    if (since % step != Duration{0}) {
      if (auto counted = refuse(
              row.line, fmt::format("{} is off the grid of one value every {}",
                                    format_rfc3339(row.reading.at), format_go_duration(step)));
          !counted) {
        return counted;
      }
      continue;
    }
    readings.push_back(row.reading);
  }
  auto series = IntensitySeries::make(readings, step);
  if (!series) return series.error().with_context(name);
  out.zones.emplace(zone, std::move(*series));
  return {};
}

}  // namespace

std::optional<TimePoint> parse_time(std::string_view text) {
  if (const auto exact = parse_rfc3339(text)) return exact;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr std::int64_t kFarthest = 253'402'300'799;  // the end of the year 9999
  if (error == std::errc{} && end == text.data() + text.size()) {
    if (seconds < 0 || seconds > kFarthest) return std::nullopt;
    return TimePoint{std::chrono::seconds{seconds}};
  }
  // "YYYY-MM-DD?HH:MM" and what may follow.
  constexpr std::size_t kMinutes = 16, kSeconds = 19;
  if (text.size() < kMinutes || (text[10] != ' ' && text[10] != 'T')) return std::nullopt;
  std::string full(text);
  full[10] = 'T';
  if (full.ends_with('Z')) full.pop_back();
  if (full.size() == kMinutes) full += ":00";
  if (full.size() < kSeconds) return std::nullopt;
  const bool offset = full.find_first_of("+-", kMinutes) != std::string::npos;
  return parse_rfc3339(offset ? full : full + "Z");
}

Result<CsvIntensities> read_csv(std::istream& in, const std::string& name, const CsvShape& shape) {
  Reader reader{in, name, shape};
  if (auto read = reader.read_rows(); !read) return read.error();
  for (const auto& [zone, found] : reader.rows) {
    if (auto made = reader.make_series(zone, found); !made) return made.error();
  }
  return std::move(reader.out);
}

}  // namespace kwatt::models::carbon
