#include "telemetry/dropped.hpp"

namespace kwatt::telemetry {

void count_dropped(Metrics& metrics, std::string_view reason) {
  metrics.add("kwatt_samples_dropped_total", "Samples that were not taken, by reason.",
              {{"reason", std::string(reason)}});
}

}  // namespace kwatt::telemetry
