#include "simulator/traces/reading.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::simulator::traces {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";  // UTF-8 byte order mark
constexpr std::size_t kShown = 40;                  // characters of a bad field

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Up to a line's end, but hardly more than `longest`, whatever the file is. False: at the end.
bool bounded_line(std::istream& in, std::string& line, std::size_t longest) {
  line.clear();
  std::streambuf* buffer = in.rdbuf();
  int c = buffer->sbumpc();
  if (c == std::char_traits<char>::eof()) return false;
  for (; c != std::char_traits<char>::eof() && c != '\n'; c = buffer->sbumpc()) {
    line.push_back(static_cast<char>(c));
    if (line.size() > longest) return true;
  }
  return true;
}

}  // namespace

std::string Lines::where() const {
  return fmt::format("{}:{}", name_, number_);
}

Result<std::optional<std::string_view>> Lines::next() {
  while (bounded_line(in_, line_, longest_)) {
    ++number_;
    if (line_.size() > longest_) {
      return fail(
          ErrorCode::parse,
          fmt::format("{}: a line is longer than {} bytes: this is no trace", where(), longest_));
    }
    if (line_.find('\0') != std::string::npos) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: there is a zero byte: this is no text (compressed files must be "
                              "unpacked first)",
                              where()));
    }
    std::string_view line = line_;
    if (number_ == 1 && line.starts_with(kMark)) line.remove_prefix(kMark.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == comment_) continue;
    return std::optional<std::string_view>{line};
  }
  return std::optional<std::string_view>{};
}

std::vector<std::string_view> split_csv(std::string_view line, std::vector<std::string>& unquoted) {
  std::vector<std::string_view> fields;
  unquoted.clear();
  unquoted.reserve(static_cast<std::size_t>(std::count(line.begin(), line.end(), '"')));
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    if (at < line.size() && line[at] == '"') {
      std::string text;
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        text.push_back(line[at]);
      }
      fields.push_back(unquoted.emplace_back(std::move(text)));
      at = std::min(line.find(',', std::min(at, line.size())), line.size());
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      fields.push_back(trimmed(line.substr(at, end - at)));
      at = end;
    }
    if (at >= line.size()) return fields;
    ++at;  // the comma
  }
}

std::vector<std::string_view> split_blanks(std::string_view line) {
  std::vector<std::string_view> fields;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

Result<double> number_in(std::string_view text, std::string_view what, double least, double most) {
  double value = 0;
  const char* end = text.data() + text.size();
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) {
    return fail(ErrorCode::parse,
                fmt::format("{}: expected a number, got \"{}\"", what, text.substr(0, kShown)));
  }
  if (value < least || value > most) {
    return fail(ErrorCode::parse, fmt::format("{}: expected a number from {:g} to {:g}, got {:g}",
                                              what, least, most, value));
  }
  return value;
}

std::optional<Error> bad_row(const Lines& lines, const Error& why, const Reading& reading,
                             Report& report) {
  Error error = why.with_context(lines.where());
  if (!reading.skip_bad) {
    error.message += " (--skip-bad leaves such rows out)";
    return error;
  }
  ++report.bad;
  if (report.first_bad.size() < Report::kNamed) report.first_bad.push_back(error.message);
  return std::nullopt;
}

Result<Columns> Columns::read(const Lines& lines, std::string_view header,
                              const std::vector<std::string_view>& known, std::size_t required) {
  Columns columns;
  std::vector<std::string> unquoted;
  const auto fields = split_csv(header, unquoted);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (std::find(known.begin(), known.end(), fields[i]) == known.end()) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: there is no column \"{}\"; known are: {}", lines.where(),
                              fields[i].substr(0, kShown), fmt::join(known, ", ")));
    }
    if (!columns.names_.emplace(std::string(fields[i]), i).second) {
      return fail(ErrorCode::parse,
                  fmt::format("{}: column \"{}\" is there twice", lines.where(), fields[i]));
    }
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (columns.names_.contains(known[i])) continue;
    return fail(ErrorCode::parse,
                fmt::format("{}: column \"{}\" is missing; the header must have "
                            "{}, and may have {}",
                            lines.where(), known[i],
                            fmt::join(known.begin(), known.begin() + required, ", "),
                            fmt::join(known.begin() + required, known.end(), ", ")));
  }
  return columns;
}

std::optional<std::string_view> Columns::field(const std::vector<std::string_view>& row,
                                               std::string_view name) const {
  const auto found = names_.find(name);
  if (found == names_.end() || found->second >= row.size() || row[found->second].empty()) {
    return std::nullopt;
  }
  return row[found->second];
}

}  // namespace kwatt::simulator::traces
