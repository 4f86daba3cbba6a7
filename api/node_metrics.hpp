#pragma once
// NodeMetrics (metrics.k8s.io/v1beta1): what metrics-server has measured of a Node. Only read.
#include <optional>
#include <string>

#include "api/meta.hpp"
#include "base/time.hpp"

namespace kwatt::api {

struct NodeMetrics {
  ObjectMeta meta;
  std::optional<TimePoint> timestamp;  // the end of the interval it was measured over
  std::string window;                  // its length, as Go writes durations: "10.062s"
  StringMap usage;                     // quantities: cpu (cores), memory
};

}  // namespace kwatt::api
