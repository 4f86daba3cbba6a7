#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace kwatt::log {
namespace {

Format g_format = Format::logfmt;
std::string g_program;  // set once by setup(), before threads

std::string_view name(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "info";
}

spdlog::level::level_enum spd(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// JSON string escapes; they are valid in a quoted logfmt value too, so one rule serves both.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c <= ' ' || c == '=' || c == '"' || c == '\\') return true;
  }
  return false;
}

void append_pair(std::string& out, Format format, std::string_view key, std::string_view value,
                 bool quoted) {
  if (format == Format::json) {
    if (out.back() != '{') out += ',';
    append_quoted(out, key);
    out += ':';
    if (quoted) {
      append_quoted(out, value);
    } else {
      out += value;
    }
    return;
  }
  if (!out.empty()) out += ' ';
  out += key;
  out += '=';
  if (quoted && needs_quotes(value)) {
    append_quoted(out, value);
  } else {
    out += value;
  }
}

}  // namespace

void setup(std::string_view program, Level minimum, Format format) {
  g_format = format;
  g_program = program;
  auto logger = std::make_shared<spdlog::logger>(std::string(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spd(minimum));
  logger->flush_on(spdlog::level::debug);
  // The time is added here so that it is the moment of the call; the rest comes from render().
  logger->set_pattern(format == Format::json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v"
                                             : "time=%Y-%m-%dT%H:%M:%S.%eZ %v",
                      spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(std::move(logger));
}

bool enabled(Level level) {
  return spdlog::should_log(spd(level));
}

std::string render(Format format, Level level, std::string_view message,
                   std::initializer_list<Field> fields) {
  std::string out = format == Format::json ? "{" : "";
  append_pair(out, format, "level", name(level), true);
  if (!g_program.empty()) append_pair(out, format, "program", g_program, true);
  append_pair(out, format, "msg", message, true);
  for (const Field& field : fields) append_pair(out, format, field.key, field.value, field.quoted);
  if (format == Format::json) out += '}';
  return out;
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (!enabled(level)) return;
  std::string line = render(g_format, level, message, fields);
  // The JSON pattern has opened the object already.
  const std::string_view text = g_format == Format::json ? std::string_view(line).substr(1) : line;
  spdlog::log(spd(level), "{}", text);
}

std::optional<Level> parse_level(std::string_view text) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error}) {
    if (text == name(level)) return level;
  }
  return std::nullopt;
}

std::optional<Format> parse_format(std::string_view text) {
  if (text == "json") return Format::json;
  if (text == "logfmt") return Format::logfmt;
  return std::nullopt;
}

}  // namespace kwatt::log
