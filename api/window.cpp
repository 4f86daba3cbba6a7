#include "api/window.hpp"

#include <algorithm>
#include <date/tz.h>
#include <stdexcept>

#include <fmt/format.h>

#include "api/cron.hpp"

namespace kwatt::api {
namespace {

using std::chrono::minutes;
using Local = date::local_time<minutes>;

// nullptr: no such zone. The library reports that by exception only.
const date::time_zone* find_zone(const std::string& name) {
  try {
    return date::locate_zone(name.empty() ? "UTC" : name);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

// The newest minute of local time within [oldest, newest] that the schedule names.
std::optional<Local> newest_match(const Cron& cron, Local oldest, Local newest) {
  for (auto day = date::floor<date::days>(newest); day + date::days{1} > oldest;
       day -= date::days{1}) {
    const date::year_month_day civil{day};
    const date::weekday weekday{day};
    if (!cron.matches_day(static_cast<unsigned>(civil.month()), static_cast<unsigned>(civil.day()),
                          weekday.c_encoding())) {
      continue;
    }
    const Local last = std::min<Local>(newest, Local{day} + minutes{24 * 60 - 1});
    for (Local at = last; at >= std::max<Local>(oldest, Local{day}); at -= minutes{1}) {
      const auto of_day = static_cast<unsigned>((at - Local{day}).count());
      if (cron.matches_minute(of_day / 60, of_day % 60)) return at;
    }
  }
  return std::nullopt;
}

}  // namespace

bool time_zone_exists(const std::string& name) {
  return find_zone(name) != nullptr;
}

Result<WindowState> window_state(const Budget& budget, TimePoint now) {
  if (budget.schedule.empty()) return WindowState{};
  const auto cron = Cron::parse(budget.schedule);
  if (!cron) return cron.error().with_context(fmt::format("schedule \"{}\"", budget.schedule));
  const date::time_zone* zone = find_zone(budget.time_zone);
  if (zone == nullptr) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("there is no time zone \"{}\"", budget.time_zone));
  }
  // Piece by piece of constant UTC offset, newest first: within one, local minutes are evenly
  // spaced. A minute that a change of the clock skips never comes; a repeated one comes twice.
  const TimePoint oldest = now - budget.duration;
  TimePoint newest = now;
  while (newest > oldest) {
    const date::sys_info info = zone->get_info(date::floor<std::chrono::seconds>(newest));
    const TimePoint begin = std::max<TimePoint>(oldest + Duration{1}, info.begin);
    const auto local = [&](TimePoint t) {
      return Local{date::floor<minutes>(t + info.offset).time_since_epoch()};
    };
    // A window begins at a whole minute: the first one within the piece is rounded up.
    const Local first = local(begin + minutes{1} - Duration{1});
    if (const auto at = newest_match(*cron, first, local(newest))) {
      const TimePoint start{at->time_since_epoch() - info.offset};
      return WindowState{true, start + budget.duration};
    }
    newest = TimePoint{info.begin} - Duration{1};
  }
  return WindowState{false, std::nullopt};
}

}  // namespace kwatt::api
