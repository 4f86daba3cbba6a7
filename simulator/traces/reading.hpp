#pragma once
// What the readers of traces share: lines with their numbers, columns by name, and what to do with
// rows that cannot be read.
#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/workload.hpp"

namespace kwatt::simulator::traces {

struct Reading {
  bool skip_bad = false;  // bad rows are counted and left out; false: the first one is an error
};

// How reading went; grows while a source is read.
struct Report {
  static constexpr std::size_t kNamed = 10;
  std::uint64_t rows = 0;              // that were used
  std::uint64_t bad = 0;               // left out
  std::uint64_t passed_over = 0;       // rows of work that never ran (SWF: cancelled jobs)
  std::vector<std::string> first_bad;  // sentences of the first kNamed
};

inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;    // 1 MiB
inline constexpr std::size_t kLongestSample = std::size_t{1} << 28;  // of a recording: 256 MiB

// Lines of a text, without end-of-line characters, byte order mark, empty lines and comments
// (from `comment` at the start of a line). Errors: parse: a line beyond `longest`, or a zero byte:
// that is no text.
class Lines {
 public:
  // `name` stands in messages. The stream must outlive this.
  Lines(std::istream& in, std::string name, char comment = '#', std::size_t longest = kLongestLine)
      : in_(in), name_(std::move(name)), comment_(comment), longest_(longest) {}
  Result<std::optional<std::string_view>> next();
  std::string where() const;  // "jobs.csv:7"
  const std::string& name() const { return name_; }

 private:
  std::istream& in_;
  std::string name_;
  char comment_;
  std::size_t longest_;
  std::string line_;
  std::uint64_t number_ = 0;
};

// One row's fields. CSV: commas, double quotes around what contains them; else blanks.
std::vector<std::string_view> split_csv(std::string_view line, std::vector<std::string>& unquoted);
std::vector<std::string_view> split_blanks(std::string_view line);

// Bounds beyond which a number in a trace is a mistake.
inline constexpr double kMostSeconds = 3.2e9;  // a hundred years
inline constexpr double kMostCores = 1e6, kMostMebibytes = 1e9, kMostGpus = 1e4;

// A number in least…most; the error says what stands there and what was expected, without a place.
// NaN and infinity are no numbers.
Result<double> number_in(std::string_view text, std::string_view what, double least, double most);

// A row that could not be read: counted and left out, or the error to end with, with its place.
// nullopt: go on.
std::optional<Error> bad_row(const Lines& lines, const Error& why, const Reading& reading,
                             Report& report);

// Columns of a CSV by the names in its header.
class Columns {
 public:
  // `known`: names that may stand there, required ones first (`required` of them). Errors: parse,
  // with the place: an unknown or repeated name, or a missing one.
  static Result<Columns> read(const Lines& lines, std::string_view header,
                              const std::vector<std::string_view>& known, std::size_t required);
  std::size_t count() const { return names_.size(); }
  // The field under `name`; nullopt: no such column, or empty.
  std::optional<std::string_view> field(const std::vector<std::string_view>& row,
                                        std::string_view name) const;

 private:
  std::map<std::string, std::size_t, std::less<>> names_;
};

}  // namespace kwatt::simulator::traces
