#include "base/time.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>

#include <fmt/format.h>

namespace kwatt {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
// Longer names first where one is the prefix of another.
constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"\xC2\xB5s", 1'000},
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"\xCE\xBCs", 1'000}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Exactly `width` digits at the front of `text`, consumed.
std::optional<int> take_digits(std::string_view& text, std::size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (!is_digit(text[i])) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(width);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<Duration> parse_go_duration(std::string_view text) {
  const bool negative = take(text, '-');
  if (!negative) take(text, '+');
  if (text == "0") return Duration{0};
  if (text.empty()) return std::nullopt;
  // long double has 64 bits of mantissa here: enough for the 2^63 nanoseconds Go allows.
  long double total = 0;
  while (!text.empty()) {
    long double number = 0;
    bool digits = false;
    while (!text.empty() && is_digit(text.front())) {
      number = number * 10 + (text.front() - '0');
      text.remove_prefix(1);
      digits = true;
    }
    if (take(text, '.')) {
      long double scale = 0.1L;
      while (!text.empty() && is_digit(text.front())) {
        number += scale * (text.front() - '0');
        scale /= 10;
        text.remove_prefix(1);
        digits = true;
      }
    }
    if (!digits) return std::nullopt;
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      if (text.substr(0, unit.name.size()) != unit.name) continue;
      if (found == nullptr || unit.name.size() > found->name.size()) found = &unit;
    }
    if (found == nullptr) return std::nullopt;
    text.remove_prefix(found->name.size());
    total += number * static_cast<long double>(found->nanoseconds);
    if (total > static_cast<long double>(std::numeric_limits<std::int64_t>::max())) {
      return std::nullopt;
    }
  }
  const auto milliseconds = static_cast<std::int64_t>(total / 1'000'000.0L);
  return Duration{negative ? -milliseconds : milliseconds};
}

std::string format_go_duration(Duration duration) {
  std::int64_t left = duration.count();
  if (left == 0) return "0s";
  std::string out;
  if (left < 0) {
    out = "-";
    left = -left;
  }
  const auto add = [&](std::int64_t unit, std::string_view name) {
    if (left < unit) return;
    out += fmt::format("{}{}", left / unit, name);
    left %= unit;
  };
  add(3'600'000, "h");
  add(60'000, "m");
  add(1'000, "s");
  add(1, "ms");
  return out;
}

std::optional<TimePoint> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const auto y = take_digits(text, 4);
  if (!y || !take(text, '-')) return std::nullopt;
  const auto mo = take_digits(text, 2);
  if (!mo || !take(text, '-')) return std::nullopt;
  const auto d = take_digits(text, 2);
  if (!d || !(take(text, 'T') || take(text, 't'))) return std::nullopt;
  const auto h = take_digits(text, 2);
  if (!h || !take(text, ':')) return std::nullopt;
  const auto mi = take_digits(text, 2);
  if (!mi || !take(text, ':')) return std::nullopt;
  const auto s = take_digits(text, 2);
  if (!s) return std::nullopt;
  std::int64_t millis = 0;
  if (take(text, '.')) {
    std::int64_t scale = 100;
    bool any = false;
    while (!text.empty() && is_digit(text.front())) {
      millis += scale * (text.front() - '0');
      scale /= 10;
      text.remove_prefix(1);
      any = true;
    }
    if (!any) return std::nullopt;
  }
  minutes offset{0};
  if (!(take(text, 'Z') || take(text, 'z'))) {
    const bool minus = take(text, '-');
    if (!minus && !take(text, '+')) return std::nullopt;
    const auto oh = take_digits(text, 2);
    if (!oh || !take(text, ':')) return std::nullopt;
    const auto om = take_digits(text, 2);
    if (!om || *oh > 23 || *om > 59) return std::nullopt;
    offset = hours{*oh} + minutes{*om};
    if (minus) offset = -offset;
  }
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)},
                            day{static_cast<unsigned>(*d)}};
  if (!text.empty() || !date.ok() || *h > 23 || *mi > 59 || *s > 60) return std::nullopt;
  return TimePoint{sys_days{date}} + hours{*h} + minutes{*mi} + seconds{*s} + Duration{millis} -
         offset;
}

namespace {
std::string format_seconds(TimePoint time) {
  using namespace std::chrono;
  const auto date_part = floor<days>(time);
  const year_month_day date{date_part};
  const hh_mm_ss clock{floor<seconds>(time - date_part)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}
}  // namespace

std::string format_rfc3339(TimePoint time) {
  return format_seconds(time) + "Z";
}

std::string format_micro_time(TimePoint time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:06}Z", format_seconds(time), (time - whole).count() * 1000);
}

}  // namespace kwatt
