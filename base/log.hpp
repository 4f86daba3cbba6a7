#pragma once
// Structured logging: a constant message and key-value fields, written as JSON lines or logfmt to
// stderr by spdlog. Never log secrets: there is no redaction.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace kwatt::log {

enum class Level { debug, info, warn, error };
enum class Format { json, logfmt };

// One key and its value, already as text (numbers and booleans are not quoted).
struct Field {
  std::string_view key;
  std::string value;
  bool quoted = true;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), quoted(false) {}
  template <class Integer>
  requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
      Field(std::string_view k, Integer v)
      : key(k), value(std::to_string(v)), quoted(false) {}
  Field(std::string_view k, const Error& e) : key(k), value(e.text()) {}
};

// Call once at start, before any thread logs. `program` becomes the field "program".
void setup(std::string_view program, Level minimum, Format format);
bool enabled(Level level);

void write(Level level, std::string_view message, std::initializer_list<Field> fields);
inline void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::debug, message, fields);
}
inline void info(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::info, message, fields);
}
inline void warn(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::warn, message, fields);
}
inline void error(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::error, message, fields);
}

// "debug" "info" "warn" "error"; nullopt otherwise. Likewise "json" and "logfmt".
std::optional<Level> parse_level(std::string_view text);
std::optional<Format> parse_format(std::string_view text);

// One line as it would be written, without time: for tests.
std::string render(Format format, Level level, std::string_view message,
                   std::initializer_list<Field> fields);

}  // namespace kwatt::log
