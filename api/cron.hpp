#pragma once
// Schedules in cron's five fields, as Karpenter's budgets use them.
#include <bitset>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace kwatt::api {

// minute hour day-of-month month day-of-week; "*", lists, ranges, steps, names of months and days,
// or one of @yearly @annually @monthly @weekly @daily @midnight @hourly. Sunday is 0 (or 7). With
// both day fields restricted, either may match, as in cron.
class Cron {
 public:
  // invalid_argument, with the field and what it may be: "minute: 75 is not within 0-59".
  static Result<Cron> parse(std::string_view text);

  // month 1..12, day 1..31, weekday 0..6 (Sunday first).
  bool matches_day(unsigned month, unsigned day, unsigned weekday) const;
  bool matches_minute(unsigned hour, unsigned minute) const {
    return hours_[hour] && minutes_[minute];
  }

 private:
  using Set = std::bitset<64>;
  Set minutes_, hours_, days_, months_, weekdays_;
  bool any_day_ = false, any_weekday_ = false;
};

}  // namespace kwatt::api
