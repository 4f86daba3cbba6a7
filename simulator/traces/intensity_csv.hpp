#pragma once
// Carbon intensity of one zone: CSV with a header, the time in the first column (RFC 3339, or
// "2023-01-01 00:00:00" in UTC), grams of CO2 per kilowatt-hour in another one.
#include "simulator/intensity.hpp"
#include "simulator/traces/reading.hpp"

namespace kwatt::simulator::traces {

// `column`: the name of the value's column; "": the one called grams_per_kwh, else the only one
// with "lca" in its name (life-cycle emissions), else the only other column. Rows must be as far
// apart as the first two; with reading.skip_bad a bad row is left out, and the value before it
// stands in its place, as it does for missing rows. Errors: parse, with the place.
Result<Intensity> read_intensity(std::istream& in, const std::string& name,
                                 std::string_view column = {}, const Reading& reading = {},
                                 Report* report = nullptr);

}  // namespace kwatt::simulator::traces
