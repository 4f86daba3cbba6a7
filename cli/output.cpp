#include "cli/output.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <yaml-cpp/yaml.h>

namespace kwatt::cli {
namespace {

// Would YAML read this plain word as something other than text?
bool needs_quotes(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords{"true", "false", "yes", "no",  "on",
                                                          "off",  "y",     "n",   "null"};
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return true;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

// RapidJSON's events, written as YAML.
struct YamlHandler : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, YamlHandler> {
  YAML::Emitter out;

  template <class T>
  bool put(const T& value) {
    out << value;
    return true;
  }
  bool Null() { return put(YAML::Null); }
  bool Bool(bool value) { return put(value); }
  bool Int(int value) { return put(value); }
  bool Uint(unsigned value) { return put(value); }
  bool Int64(std::int64_t value) { return put(value); }
  bool Uint64(std::uint64_t value) { return put(value); }
  bool Double(double value) { return put(value); }
  bool String(const char* data, rapidjson::SizeType size, bool) {
    const std::string text(data, size);
    if (needs_quotes(text)) out << YAML::DoubleQuoted;
    return put(text);
  }
  bool Key(const char* data, rapidjson::SizeType size, bool) {
    out << YAML::Key << std::string(data, size) << YAML::Value;
    return true;
  }
  bool StartObject() { return put(YAML::BeginMap); }
  bool EndObject(rapidjson::SizeType) { return put(YAML::EndMap); }
  bool StartArray() { return put(YAML::BeginSeq); }
  bool EndArray(rapidjson::SizeType) { return put(YAML::EndSeq); }
};

template <class Handler>
void read_json(const std::string& json, Handler& handler) {
  rapidjson::Reader reader;
  rapidjson::StringStream stream(json.c_str());
  reader.Parse<rapidjson::kParseIterativeFlag>(stream, handler);
}

// Two characters of UTF-8 that stand side by side count as one.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string shown(Format format, const std::string& table, const std::string& json) {
  switch (format) {
    case Format::json:
      return pretty_json(json);
    case Format::yaml:
      return yaml_of(json);
    case Format::table:
      break;
  }
  return table;
}

void add_format(CLI::App& verb, Format& format) {
  verb.add_option_function<std::string>(
          "-o,--output",
          [&format](const std::string& word) {
            format = word == "json" ? Format::json : word == "yaml" ? Format::yaml : Format::table;
          },
          "How to show it")
      ->check(CLI::IsMember({"table", "json", "yaml"}).description(""))
      ->type_name("table|json|yaml")
      ->default_str("table");
}

std::string pretty_json(const std::string& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 2);
  read_json(json, writer);
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

std::string yaml_of(const std::string& json) {
  YamlHandler handler;
  read_json(json, handler);
  return std::string(handler.out.c_str()) + "\n";
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - width(row[i]) + 3, ' ');
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  }
  return text;
}

std::string count(std::int64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

std::string human(Duration duration) {
  struct Unit {
    std::int64_t seconds;
    std::string_view name;
  };
  static constexpr std::array<Unit, 4> kUnits{{{86'400, "d"}, {3'600, "h"}, {60, "min"}, {1, "s"}}};
  const std::int64_t seconds = std::max<std::int64_t>(0, duration.count() / 1000);
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::int64_t whole = seconds / kUnits[i].seconds;
    if (whole == 0) continue;
    std::string text = fmt::format("{} {}", whole, kUnits[i].name);
    // A second unit only where it matters.
    if (whole < 10 && i + 1 < kUnits.size()) {
      const std::int64_t rest = seconds % kUnits[i].seconds / kUnits[i + 1].seconds;
      if (rest > 0) text += fmt::format(" {} {}", rest, kUnits[i + 1].name);
    }
    return text;
  }
  return "0 s";
}

std::string relative(TimePoint when, TimePoint now) {
  const auto distance = std::chrono::duration_cast<std::chrono::seconds>(when - now).count();
  if (distance == 0) return "now";
  return distance < 0 ? human(now - when) + " ago" : "in " + human(when - now);
}

std::string moment(TimePoint when, TimePoint now) {
  return fmt::format("{} ({})", format_rfc3339(when), relative(when, now));
}

std::string energy(std::int64_t watt_hours) {
  if (watt_hours < 10'000) return fmt::format("{} Wh", watt_hours);
  return fmt::format("{}.{} kWh", watt_hours / 1000, watt_hours % 1000 / 100);
}

}  // namespace kwatt::cli
