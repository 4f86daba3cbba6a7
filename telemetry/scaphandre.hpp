#pragma once
// Prometheus' text format as Scaphandre writes it: the body of POST /metrics-ingest with
// Content-Type text/plain. Pure.
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

// The host's power: scaph_host_power_microwatts. Other metrics (sockets, processes) are parts of it
// and passed over. Errors: parse, with the number of the line that is not of the format, of the one
// that says it a second time, or whose value is no power; not_found, when no line says it.
Result<Milliwatts> read_host_power(std::string_view text);

}  // namespace kwatt::telemetry
