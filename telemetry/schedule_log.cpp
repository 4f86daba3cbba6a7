#include "telemetry/schedule_log.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace kwatt::telemetry {
namespace {

std::string quoted(const std::string& text) {
  std::string out = text;
  // A spreadsheet would take it for a formula.
  if (!out.empty() && std::strchr("=+-@\t\r", out.front()) != nullptr) out.insert(0, "'");
  if (out.find_first_of("\",\n\r") == std::string::npos) return out;
  std::string whole = "\"";
  for (const char c : out) {
    if (c == '"') whole += '"';
    whole += c;
  }
  return whole + '"';
}

}  // namespace

std::string schedule_line(const ScheduleLine& line) {
  return fmt::format("{},{},{},{},{}\n", quoted(line.job), quoted(line.node), quoted(line.strategy),
                     line.grams_per_kwh < 0 ? "" : fmt::format("{:.1f}", line.grams_per_kwh),
                     format_rfc3339(line.at));
}

Result<void> ScheduleLog::add(const ScheduleLine& line) {
  const auto failed = [&](const char* what) {
    return fail(ErrorCode::io, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
  };
  std::error_code ignored;
  auto size = std::filesystem::file_size(path_, ignored);
  if (ignored) size = 0;
  if (size > static_cast<std::uintmax_t>(kMostBytes)) {
    std::filesystem::rename(path_, path_ + ".1", ignored);
    if (!ignored) size = 0;
  }
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  if (!out) return failed("cannot be opened");
  if (size == 0) out << kScheduleHeader;
  out << schedule_line(line);
  out.flush();
  if (!out) return failed("cannot be written");
  return {};
}

}  // namespace kwatt::telemetry
