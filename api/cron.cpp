#include "api/cron.hpp"

#include <array>
#include <charconv>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace kwatt::api {
namespace {

struct FieldRule {
  std::string_view name;
  unsigned first, last;
  std::span<const std::string_view> words;  // names of values, beginning with `first`
};

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::array<FieldRule, 5> kRules{{{"minute", 0, 59, {}},
                                           {"hour", 0, 23, {}},
                                           {"day of month", 1, 31, {}},
                                           {"month", 1, 12, kMonths},
                                           {"day of week", 0, 7, kDays}}};

struct Shortcut {
  std::string_view name, meaning;
};
constexpr std::array<Shortcut, 7> kShortcuts{{{"@yearly", "0 0 1 1 *"},
                                              {"@annually", "0 0 1 1 *"},
                                              {"@monthly", "0 0 1 * *"},
                                              {"@weekly", "0 0 * * 0"},
                                              {"@daily", "0 0 * * *"},
                                              {"@midnight", "0 0 * * *"},
                                              {"@hourly", "0 * * * *"}}};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

Result<unsigned> parse_value(std::string_view text, const FieldRule& rule) {
  for (std::size_t i = 0; i < rule.words.size(); ++i) {
    const std::string_view word = rule.words[i];
    if (text.size() != word.size()) continue;
    bool same = true;
    for (std::size_t c = 0; c < word.size(); ++c) same = same && (text[c] | 0x20) == word[c];
    if (same) return rule.first + static_cast<unsigned>(i);
  }
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: \"{}\" is not a number", rule.name, text));
  }
  if (value < rule.first || value > rule.last) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {} is not within {}-{}", rule.name, value, rule.first, rule.last));
  }
  return value;
}

// "*", "5", "1-5", "*/10", "10-50/10", "5/10"
Result<void> parse_part(std::string_view text, const FieldRule& rule, std::bitset<64>& out) {
  const auto halves = split(text, "/");
  if (halves.size() > 2) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: \"{}\" has two steps", rule.name, text));
  }
  unsigned step = 1;
  if (halves.size() == 2) {
    const auto given = parse_value(halves[1], {rule.name, 1, rule.last, {}});
    if (!given) return given.error();
    step = *given;
  }
  unsigned first = rule.first;
  unsigned last = rule.last;
  if (halves[0] != "*" && halves[0] != "?") {
    const auto ends = split(halves[0], "-");
    if (ends.size() > 2) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: \"{}\" is not a range", rule.name, halves[0]));
    }
    const auto low = parse_value(ends[0], rule);
    if (!low) return low.error();
    first = *low;
    if (ends.size() == 2) {
      const auto high = parse_value(ends[1], rule);
      if (!high) return high.error();
      last = *high;
    } else if (halves.size() == 1) {
      last = first;
    }
    if (last < first) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: the range \"{}\" ends before it begins", rule.name, halves[0]));
    }
  }
  for (unsigned value = first; value <= last; value += step) out.set(value);
  return {};
}

Result<std::bitset<64>> parse_field(std::string_view text, const FieldRule& rule) {
  std::bitset<64> out;
  for (const std::string_view part : split(text, ",")) {
    if (auto done = parse_part(part, rule, out); !done) return done.error();
  }
  return out;
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  for (const Shortcut& shortcut : kShortcuts) {
    if (text == shortcut.name) return parse(shortcut.meaning);
  }
  std::vector<std::string_view> fields;
  for (const std::string_view field : split(text, " \t")) {
    if (!field.empty()) fields.push_back(field);
  }
  if (fields.size() != kRules.size()) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("it has {} fields, not the five minute hour day month weekday", fields.size()));
  }
  Cron cron;
  const std::array<Set*, 5> sets{&cron.minutes_, &cron.hours_, &cron.days_, &cron.months_,
                                 &cron.weekdays_};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto parsed = parse_field(fields[i], kRules[i]);
    if (!parsed) return parsed.error();
    *sets[i] = *parsed;
  }
  if (cron.weekdays_[7]) cron.weekdays_.set(0);
  cron.any_day_ = fields[2].front() == '*' || fields[2].front() == '?';
  cron.any_weekday_ = fields[4].front() == '*' || fields[4].front() == '?';
  // February 30 and its like would never come: a mistake, not a schedule.
  constexpr std::array<unsigned, 12> kLongest{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool possible = !cron.any_weekday_;
  for (unsigned month = 1; month <= 12; ++month) {
    for (unsigned day = 1; cron.months_[month] && day <= kLongest[month - 1]; ++day) {
      possible = possible || cron.days_[day];
    }
  }
  if (!possible) {
    return fail(ErrorCode::invalid_argument, "no month it names has that day");
  }
  return cron;
}

bool Cron::matches_day(unsigned month, unsigned day, unsigned weekday) const {
  if (!months_[month]) return false;
  if (any_day_ || any_weekday_) return days_[day] && weekdays_[weekday];
  return days_[day] || weekdays_[weekday];
}

}  // namespace kwatt::api
