#pragma once
// From the JSON of a public service to carbon intensities, by a mapping that its user writes down:
// JSON pointers (RFC 6901) to the list, and within each of its elements to time and value. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "models/carbon/intensity_series.hpp"

namespace kwatt::telemetry {

struct CarbonMapping {
  std::string list;                // "": the document itself; an object is a list of one
  std::string time = "/datetime";  // text or Unix seconds, as in CSV files
  std::string value = "/carbonIntensity";
  std::string unit = "g/kWh";  // one of carbon_units()
};

// What a value of this unit is in grams per kWh; nullopt: not known.
// "g/kWh", "kg/MWh" (the same), "kg/kWh", "lbs/MWh".
std::optional<double> grams_in(std::string_view unit);
inline constexpr std::string_view kCarbonUnits = "g/kWh, kg/MWh, kg/kWh, lbs/MWh";

// Errors: invalid_argument, naming the field: no JSON pointer, no such unit.
Result<void> check(const CarbonMapping& mapping);

// In the order of time, one for each time (of equal ones the last). An element whose value is null
// or missing is a gap, as services write hours that are still to come.
// Errors: parse, with the place in the document ("/history/3/datetime") and what was expected.
Result<std::vector<models::carbon::Reading>> read_carbon_json(std::string_view json,
                                                              const CarbonMapping& mapping);

}  // namespace kwatt::telemetry
