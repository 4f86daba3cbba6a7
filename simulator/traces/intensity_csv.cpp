#include "simulator/traces/intensity_csv.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::simulator::traces {
namespace {

constexpr double kMostGrams = 5000;
constexpr std::size_t kMostRows = 10'000'000;

std::optional<TimePoint> time_of(std::string_view text) {
  if (auto time = parse_rfc3339(text)) return time;
  std::string rfc(text);
  if (rfc.size() >= 11 && rfc[10] == ' ') rfc[10] = 'T';
  return parse_rfc3339(rfc + "Z");
}

Result<std::size_t> value_column(const Lines& lines, const std::vector<std::string_view>& header,
                                 std::string_view wanted) {
  const auto find = [&](auto&& is) {
    std::vector<std::size_t> found;
    for (std::size_t i = 1; i < header.size(); ++i) {
      if (is(header[i])) found.push_back(i);
    }
    return found;
  };
  auto found = find([&](std::string_view name) {
    return name == (wanted.empty() ? std::string_view("grams_per_kwh") : wanted);
  });
  if (wanted.empty() && found.empty()) {
    found = find([](std::string_view name) { return name.find("lca") != std::string_view::npos; });
  }
  if (wanted.empty() && found.empty()) found = find([](std::string_view) { return true; });
  if (found.size() == 1) return found.front();
  return fail(ErrorCode::parse,
              fmt::format("{}: the header must name the time and {}", lines.where(),
                          wanted.empty() ? std::string("one column of grams_per_kwh")
                                         : fmt::format("one column \"{}\"", wanted)));
}

struct Row {
  TimePoint time;
  double grams = 0;
};

Result<Row> row_of(const std::vector<std::string_view>& fields, std::size_t columns,
                   std::size_t column) {
  if (fields.size() != columns) {
    return fail(ErrorCode::parse,
                fmt::format("expected {} fields, got {}", columns, fields.size()));
  }
  const auto time = time_of(fields[0]);
  if (!time) {
    return fail(ErrorCode::parse,
                fmt::format("expected a time such as 2023-01-01T00:00:00Z, got \"{}\"",
                            fields[0].substr(0, 40)));
  }
  auto grams = number_in(fields[column], "intensity", 0, kMostGrams);
  if (!grams) return grams.error();
  return Row{*time, *grams};
}

// Adds the row, and repeats the value before it where rows are missing and that is allowed.
Result<void> add(Intensity& series, const Row& row, bool fill) {
  auto& values = series.grams_per_kwh;
  if (values.empty()) {
    series.start = row.time;
  } else if (values.size() == 1) {
    series.step = row.time - series.start;
    if (series.step <= Duration{0}) {
      return fail(ErrorCode::parse,
                  fmt::format("{} is not after {}: rows must be sorted by time",
                              format_rfc3339(row.time), format_rfc3339(series.start)));
    }
  } else {
    const auto next = [&] {
      return series.start + series.step * static_cast<std::int64_t>(values.size());
    };
    while (fill && next() < row.time && values.size() < kMostRows) {
      if ((row.time - series.start) % series.step != Duration{0}) break;
      values.push_back(values.back());
    }
    if (row.time != next()) {
      return fail(ErrorCode::parse,
                  fmt::format("expected the row of {}, got {}: rows must be equally far apart",
                              format_rfc3339(next()), format_rfc3339(row.time)));
    }
  }
  values.push_back(row.grams);
  return {};
}

}  // namespace

Result<Intensity> read_intensity(std::istream& in, const std::string& name, std::string_view column,
                                 const Reading& reading, Report* report) {
  Lines lines(in, name);
  Report own;
  if (report == nullptr) report = &own;
  Intensity series;
  std::size_t columns = 0, value = 0;
  std::vector<std::string> unquoted;
  while (true) {
    auto line = lines.next();
    if (!line) return line.error();
    if (!*line) break;
    const auto fields = split_csv(**line, unquoted);
    if (columns == 0) {
      columns = fields.size();
      auto found = value_column(lines, fields, column);
      if (!found) return found.error();
      value = *found;
      continue;
    }
    auto row = row_of(fields, columns, value);
    Result<void> added = row ? add(series, *row, reading.skip_bad) : Result<void>(row.error());
    if (!added) {
      if (auto error = bad_row(lines, added.error(), reading, *report)) return *error;
      continue;
    }
    ++report->rows;
  }
  if (series.grams_per_kwh.empty()) {
    return fail(ErrorCode::parse, fmt::format("{}: there are no values", name));
  }
  return series;
}

}  // namespace kwatt::simulator::traces
