#pragma once
// Time in two kinds: Duration and TimePoint, both in whole milliseconds, and the text forms that
// Kubernetes uses for them.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kwatt {

using Duration = std::chrono::milliseconds;
using TimePoint = std::chrono::sys_time<Duration>;  // wall clock, UTC
using MonotonicPoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Go's time.ParseDuration: "10m", "1h30m", "250ms", "0s", "-5s"; nothing else. Units h m s ms us
// ns; parts of a millisecond are dropped. nullopt: not a duration, or beyond ±292 years.
std::optional<Duration> parse_go_duration(std::string_view text);
// The shortest form Go would print: "0s", "1h30m", "90ms" ("1h30m0s" is written as "1h30m").
std::string format_go_duration(Duration duration);

// RFC 3339 as Kubernetes writes metav1.Time ("2026-11-20T21:44:03Z") and metav1.MicroTime (six
// decimals); an offset such as +02:00 is understood. nullopt: not such a time.
std::optional<TimePoint> parse_rfc3339(std::string_view text);
std::string format_rfc3339(TimePoint time);
std::string format_micro_time(TimePoint time);

}  // namespace kwatt
