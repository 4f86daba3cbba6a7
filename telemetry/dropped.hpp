#pragma once
// Counts samples that were not taken.
#include <string_view>

#include "base/metrics.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::telemetry {

void count_dropped(Metrics& metrics, std::string_view reason);
inline void count_dropped(Metrics& metrics, Refusal refusal) {
  count_dropped(metrics, to_string(refusal));
}

}  // namespace kwatt::telemetry
