#include "telemetry/scaphandre.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kMetric = "scaph_host_power_microwatts";
constexpr double kMostMicrowatts = 1e11;  // 100 kW
constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The end of "{…}" at the start of `text`: braces within quotes do not count. npos: not closed.
std::size_t end_of_labels(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '}' && !quoted) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// The value of a line "name{labels} value [time]" of our metric; nullopt: of another one.
Result<std::optional<double>> value_of(std::string_view line) {
  const auto name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos || name_end == 0) {
    return fail(ErrorCode::parse, "is no metric with a value");
  }
  if (line.substr(0, name_end) != kMetric) return std::optional<double>{};
  std::string_view rest = trimmed(line.substr(name_end));
  if (rest.starts_with('{')) {
    const auto end = end_of_labels(rest);
    if (end == std::string_view::npos) return fail(ErrorCode::parse, "has labels without an end");
    rest = trimmed(rest.substr(end));
  }
  const std::string_view number = rest.substr(0, rest.find_first_of(kBlank));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(value) ||
      value < 0 || value > kMostMicrowatts) {
    return fail(ErrorCode::parse, "has a value that is no power of a machine");
  }
  return std::optional<double>{value};
}

}  // namespace

Result<Milliwatts> read_host_power(std::string_view text) {
  std::optional<double> found;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    auto value = value_of(line);
    if (value && *value && found) value = fail(ErrorCode::parse, "says the host's power once more");
    if (!value) return value.error().with_context(fmt::format("line {}", number));
    if (*value) found = **value;
  }
  if (!found) return fail(ErrorCode::not_found, fmt::format("no line says {}", kMetric));
  return Milliwatts{std::llround(*found / 1000)};
}

}  // namespace kwatt::telemetry
