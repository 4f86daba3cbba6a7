#pragma once
// The answer of Prometheus' GET /api/v1/query to an instant query. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace kwatt::telemetry {

// One element of an instant vector.
struct Series {
  std::vector<std::pair<std::string, std::string>> labels;  // those that were asked for, as sent
  double time = 0;        // Unix seconds: of the evaluation, not of the measurement
  double value = 0;       // may be NaN or infinite
  bool is_number = true;  // false: the text of the value is no number at all
  std::string_view label(std::string_view name) const;  // "": absent
};

inline constexpr std::size_t kMostSeries = 100'000;

// Reads the vector of a successful answer, keeping only the labels named in `wanted`.
// Errors: parse, when it is not such an answer (HTML, cut off, another result type, more than
// kMostSeries); and by the errorType of an error answer invalid_argument (bad_data, execution),
// timeout, cancelled or unavailable, with Prometheus' own words as server_text.
Result<std::vector<Series>> parse_instant_vector(std::string_view json,
                                                 const std::vector<std::string>& wanted);

}  // namespace kwatt::telemetry
