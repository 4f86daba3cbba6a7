// Cron schedules and the windows of disruption budgets.
#include <doctest/doctest.h>

#include "api/cron.hpp"
#include "api/window.hpp"

namespace kwatt::api {
namespace {

TEST_CASE("a schedule matches the times it names") {
  struct Case {
    const char* schedule;
    unsigned month, day, weekday, hour, minute;
    bool want;
  };
  const Case cases[] = {
      {"* * * * *", 11, 20, 5, 21, 44, true},      {"0 22 * * *", 11, 20, 5, 22, 0, true},
      {"0 22 * * *", 11, 20, 5, 22, 1, false},     {"*/15 * * * *", 11, 20, 5, 3, 45, true},
      {"*/15 * * * *", 11, 20, 5, 3, 50, false},   {"5/20 * * * *", 11, 20, 5, 3, 45, true},
      {"5/20 * * * *", 11, 20, 5, 3, 0, false},    {"0 8-10 * * *", 11, 20, 5, 9, 0, true},
      {"0 8-10,22 * * *", 11, 20, 5, 22, 0, true}, {"0 8-18/5 * * *", 11, 20, 5, 13, 0, true},
      {"0 0 * * mon-fri", 11, 20, 5, 0, 0, true},  {"0 0 * * mon-fri", 11, 21, 6, 0, 0, false},
      {"0 0 * * SUN", 11, 22, 0, 0, 0, true},      {"0 0 * * 7", 11, 22, 0, 0, 0, true},
      {"0 0 1 * *", 11, 1, 0, 0, 0, true},         {"0 0 1 nov *", 12, 1, 2, 0, 0, false},
      {"0 0 13 * fri", 11, 13, 5, 0, 0, true},     {"0 0 13 * fri", 11, 20, 5, 0, 0, true},
      {"0 0 13 * fri", 12, 13, 0, 0, 0, true},     {"0 0 13 * fri", 12, 14, 1, 0, 0, false},
      {"@daily", 11, 20, 5, 0, 0, true},           {"@hourly", 11, 20, 5, 17, 0, true},
      {"@monthly", 11, 2, 1, 0, 0, false},         {"  0\t22 * * ? ", 11, 20, 5, 22, 0, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.schedule);
    const auto cron = Cron::parse(c.schedule);
    REQUIRE(cron.has_value());
    CHECK((cron->matches_day(c.month, c.day, c.weekday) &&
           cron->matches_minute(c.hour, c.minute)) == c.want);
  }
}

TEST_CASE("a schedule that is none is refused with the reason") {
  struct Case {
    const char* schedule;
    const char* says;
  };
  const Case cases[] = {
      {"", "0 fields"},
      {"* * * *", "4 fields"},
      {"* * * * * *", "6 fields"},
      {"60 * * * *", "minute: 60 is not within 0-59"},
      {"* 24 * * *", "hour: 24 is not within 0-23"},
      {"* * 0 * *", "day of month: 0 is not within 1-31"},
      {"* * * 13 *", "month: 13 is not within 1-12"},
      {"* * * * 8", "day of week: 8 is not within 0-7"},
      {"* * * * fry", "day of week: \"fry\" is not a number"},
      {"5-1 * * * *", "ends before it begins"},
      {"1-2-3 * * * *", "is not a range"},
      {"*/0 * * * *", "minute: 0 is not within 1-59"},
      {"*/1/2 * * * *", "two steps"},
      {"1,, * * * *", "is not a number"},
      {"0 0 31 2,4 *", "no month it names has that day"},
      {"@never", "1 fields"},
      {"-1 * * * *", "is not a number"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.schedule);
    const auto cron = Cron::parse(c.schedule);
    REQUIRE_FALSE(cron.has_value());
    CHECK(cron.error().message.find(c.says) != std::string::npos);
  }
}

TimePoint at(const char* text) {
  return *parse_rfc3339(text);
}

TEST_CASE("a budget is in force from each time of its schedule for its duration") {
  struct Case {
    const char* name;
    const char* schedule;
    Duration duration;
    const char* zone;
    const char* now;
    bool active;
    const char* until;
  };
  const Case cases[] = {
      {"before", "0 22 * * *", hours{8}, "", "2026-11-20T21:59:59Z", false, ""},
      {"at the start", "0 22 * * *", hours{8}, "", "2026-11-20T22:00:00Z", true,
       "2026-11-21T06:00:00Z"},
      {"within, on the next day", "0 22 * * *", hours{8}, "", "2026-11-21T05:59:59Z", true,
       "2026-11-21T06:00:00Z"},
      {"at the end", "0 22 * * *", hours{8}, "", "2026-11-21T06:00:00Z", false, ""},
      {"in another zone", "0 22 * * *", hours{8}, "Europe/Berlin", "2026-11-20T21:00:00Z", true,
       "2026-11-21T05:00:00Z"},
      {"in another zone, before", "0 22 * * *", hours{8}, "Europe/Berlin", "2026-11-20T20:59:59Z",
       false, ""},
      {"not on this weekday", "0 22 * * sat", hours{2}, "", "2026-11-20T23:00:00Z", false, ""},
      {"over the weekend", "0 18 * * fri", hours{60}, "", "2026-11-22T23:00:00Z", true,
       "2026-11-23T06:00:00Z"},
      {"over a month", "@monthly", hours{744}, "", "2026-11-30T23:59:00Z", true,
       "2026-12-02T00:00:00Z"},
      {"windows that overlap: the newest counts", "0 * * * *", minutes{90}, "",
       "2026-11-20T21:20:00Z", true, "2026-11-20T22:30:00Z"},
      // On 2026-10-25 clocks in Berlin go from 03:00 back to 02:00: 02:30 comes twice.
      {"across the end of summer time", "0 1 * * *", hours{3}, "Europe/Berlin",
       "2026-10-25T01:59:00Z", true, "2026-10-25T02:00:00Z"},
      {"after it", "0 1 * * *", hours{3}, "Europe/Berlin", "2026-10-25T02:00:00Z", false, ""},
      {"the repeated hour", "30 2 * * *", minutes{10}, "Europe/Berlin", "2026-10-25T01:35:00Z",
       true, "2026-10-25T01:40:00Z"},
      // On 2026-03-29 there is no 02:30 in Berlin.
      {"the skipped hour", "30 2 * * *", minutes{10}, "Europe/Berlin", "2026-03-29T01:35:00Z",
       false, ""},
      {"across the begin of summer time: the duration is real time", "0 1 * * *", hours{3},
       "Europe/Berlin", "2026-03-29T02:59:59Z", true, "2026-03-29T03:00:00Z"},
      {"and over then", "0 1 * * *", hours{3}, "Europe/Berlin", "2026-03-29T03:00:00Z", false, ""},
      {"between the two repeated hours", "30 2 * * *", minutes{10}, "Europe/Berlin",
       "2026-10-25T00:41:00Z", false, ""},
      {"the first of the two", "30 2 * * *", minutes{10}, "Europe/Berlin", "2026-10-25T00:35:00Z",
       true, "2026-10-25T00:40:00Z"},
      // Lord Howe turns its clocks by half an hour, from +11:00 to +10:30.
      {"half an hour comes twice", "45 1 * * *", minutes{10}, "Australia/Lord_Howe",
       "2026-04-04T15:20:00Z", true, "2026-04-04T15:25:00Z"},
      // In Sao Paulo clocks went from midnight to 01:00 on 2018-11-04.
      {"a midnight that never was", "@daily", hours{1}, "America/Sao_Paulo", "2018-11-04T03:30:00Z",
       false, ""},
      {"the next midnight", "@daily", hours{1}, "America/Sao_Paulo", "2018-11-05T02:30:00Z", true,
       "2018-11-05T03:00:00Z"},
      {"east of all dates", "0 0 * * sat", hours{1}, "Pacific/Kiritimati", "2026-11-20T10:30:00Z",
       true, "2026-11-20T11:00:00Z"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Budget budget;
    budget.schedule = c.schedule;
    budget.duration = c.duration;
    budget.time_zone = c.zone;
    const auto state = window_state(budget, at(c.now));
    REQUIRE(state.has_value());
    CHECK(state->active == c.active);
    CHECK((state->until ? format_rfc3339(*state->until) : "") == c.until);
  }
}

TEST_CASE("a budget without a schedule is always in force, without an end") {
  const auto state = window_state(Budget{}, at("2026-11-20T21:59:59Z"));
  REQUIRE(state.has_value());
  CHECK(state->active);
  CHECK_FALSE(state->until.has_value());
}

TEST_CASE("a broken budget is an error, not a guess") {
  Budget budget;
  budget.schedule = "@daily";
  budget.duration = hours{1};
  budget.time_zone = "Europe/Atlantis";
  CHECK(window_state(budget, at("2026-11-20T21:59:59Z")).has_error());
  budget.time_zone = "";
  budget.schedule = "often";
  CHECK(window_state(budget, at("2026-11-20T21:59:59Z")).has_error());
}

}  // namespace
}  // namespace kwatt::api
