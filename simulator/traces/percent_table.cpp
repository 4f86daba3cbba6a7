#include "simulator/traces/percent_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace kwatt::simulator::traces {
namespace {

Error bad(std::string_view name, std::size_t line, const std::string& what) {
  return fail(ErrorCode::parse, fmt::format("{}:{}: {}", name, line, what));
}

bool next_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line)) return false;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

// Cuts the first field off the rest.
std::string_view cut(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view field = rest.substr(0, comma);
  rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  return field;
}

Result<std::vector<std::string>> read_names(const std::string& line, std::string_view name) {
  std::vector<std::string> names;
  std::string_view rest = line;
  const auto count = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view field = cut(rest);
    if (field.empty()) {
      return bad(name, 1, fmt::format("column {} has no name, expected that of a VM", i + 1));
    }
    if (!names.empty() && field <= names.back()) {
      return bad(name, 1,
                 fmt::format("VM '{}' after '{}': expected names in bytewise order, each once "
                             "(the order decides the sizes of the VMs)",
                             field, names.back()));
    }
    names.emplace_back(field);
  }
  return names;
}

std::optional<std::string> read_value(std::string_view field, const PercentRules& rules,
                                      double& value) {
  const std::string wanted =
      fmt::format("expected a {} from 0 to {}", rules.whole ? "whole percentage" : "percentage",
                  rules.clip ? 1e6 : rules.above);
  if (field.empty()) return fmt::format("no value, {}", wanted);
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value, std::chars_format::fixed);
  const bool digits =
      std::all_of(field.begin(), field.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (error != std::errc{} || stop != end || !std::isfinite(value) || (rules.whole && !digits) ||
      std::signbit(value) || value > (rules.clip ? 1e6 : rules.above)) {
    return fmt::format("'{}', {}", field, wanted);
  }
  value = std::min(value, rules.above);
  return std::nullopt;
}

}  // namespace

Result<Series> read_percent_table(std::istream& in, std::string_view name,
                                  const PercentRules& rules) {
  std::string line;
  if (!next_line(in, line) || line.empty()) {
    return bad(name, 1, "empty, expected a line with the names of the VMs");
  }
  Result<std::vector<std::string>> names = read_names(line, name);
  if (!names) return names.error();
  Series series;
  series.names = std::move(names.value());
  for (std::size_t number = 2; next_line(in, line); ++number) {
    const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    if (fields != series.columns() || line.empty()) {
      return bad(name, number,
                 fmt::format("{} values, expected {}, one for each VM of line 1",
                             line.empty() ? 0 : fields, series.columns()));
    }
    std::string_view rest = line;
    for (const std::string& vm : series.names) {
      double percent = 0;
      if (const auto wrong = read_value(cut(rest), rules, percent)) {
        return bad(name, number, fmt::format("VM '{}': {}", vm, *wrong));
      }
      series.values.push_back(percent / 100);
    }
    ++series.samples;
  }
  if (series.samples == 0) return bad(name, 2, "no line of values, expected one for each step");
  return series;
}

}  // namespace kwatt::simulator::traces
