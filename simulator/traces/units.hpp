#pragma once
// From the units of traces to ours. Internal to simulator/traces.
#include <cmath>

#include <fmt/format.h>

#include "simulator/workload.hpp"

namespace kwatt::simulator::traces {

inline std::int64_t rounded(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}
inline Duration seconds_of(double seconds) {
  return Duration{rounded(seconds * 1000)};
}
// Anything above 0 is at least the smallest unit.
inline std::int64_t at_least_one(double value) {
  return value > 0 ? std::max<std::int64_t>(1, rounded(value)) : 0;
}
inline Amount amount_of(double cores, double mebibytes, double gpus) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return {Millicores{at_least_one(cores * 1000)}, Bytes{rounded(mebibytes * kMebibyte)},
          at_least_one(gpus * 1000)};
}
inline Error back_in_time(Duration arrival, Duration last) {
  return fail(
      ErrorCode::parse,
      fmt::format("it arrives at {} s, before the job before it ({} s): rows must be sorted "
                  "by arrival",
                  static_cast<double>(arrival.count()) / 1000,
                  static_cast<double>(last.count()) / 1000));
}

}  // namespace kwatt::simulator::traces
