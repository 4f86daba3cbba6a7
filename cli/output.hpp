#pragma once
// Ways to show an answer.
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/time.hpp"

namespace kwatt::cli {

enum class Format { table, json, yaml };
// -o, --output: table (default), json or yaml.
void add_format(CLI::App& verb, Format& format);

// JSON as written by api::encode(), indented; or the same as YAML. Both end with a newline.
std::string pretty_json(const std::string& json);
std::string yaml_of(const std::string& json);
// `table` and `json` as asked for; a table is shown as it is.
std::string shown(Format format, const std::string& table, const std::string& json);

// Columns of equal width, three spaces apart, as kubectl prints them.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "1 pod", "3 pods"
std::string count(std::int64_t number, std::string_view thing);
// For people: "35 s", "4 min 10 s", "2 h 5 min", "3 d". Not negative.
std::string human(Duration duration);
// "2 h ago", "in 5 min", "now".
std::string relative(TimePoint when, TimePoint now);
// "2026-11-21T15:04:05Z (in 5 min)"
std::string moment(TimePoint when, TimePoint now);
// "950 Wh", from 10 kWh on "12.3 kWh".
std::string energy(std::int64_t watt_hours);

}  // namespace kwatt::cli
