#pragma once
// resource.Quantity of Kubernetes: "100m", "1.5Gi", "12e6". All results are rounded up, as the
// scheduler's Value() and MilliValue() do, and saturate instead of overflowing.
#include <cstdint>
#include <optional>
#include <string_view>

namespace kwatt::api {

// In whole units (bytes for memory, pieces for extended resources); nullopt: not a quantity.
std::optional<std::int64_t> parse_quantity(std::string_view text);
// In thousandths: millicores for cpu.
std::optional<std::int64_t> parse_quantity_milli(std::string_view text);

}  // namespace kwatt::api
