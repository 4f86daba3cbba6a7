#include "telemetry/carbon_mapping.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/pointer.h>

#include "models/carbon/intensity_csv.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Reading;

constexpr std::size_t kMostElements = 200'000;
constexpr double kGramsInPound = 453.59237;

struct Unit {
  std::string_view name;
  double grams;
};
constexpr std::array<Unit, 4> kUnits{{
    {"g/kWh", 1},
    {"kg/MWh", 1},
    {"kg/kWh", 1000},
    {"lbs/MWh", kGramsInPound / 1000},
}};

std::string_view kind_of(const rapidjson::Value& value) {
  switch (value.GetType()) {
    case rapidjson::kNullType:
      return "null";
    case rapidjson::kFalseType:
    case rapidjson::kTrueType:
      return "a truth value";
    case rapidjson::kObjectType:
      return "an object";
    case rapidjson::kArrayType:
      return "a list";
    case rapidjson::kStringType:
      return "a text";
    case rapidjson::kNumberType:
      break;
  }
  return "a number";
}

Error bad(const std::string& where, std::string_view why) {
  return fail(ErrorCode::parse,
              fmt::format("carbon intensity at {}: {}", where.empty() ? "the root" : where, why));
}

struct Pointers {
  explicit Pointers(const CarbonMapping& mapping)
      : list(mapping.list.c_str()), time(mapping.time.c_str()), value(mapping.value.c_str()) {}
  rapidjson::Pointer list, time, value;
};

Result<std::optional<Reading>> read_element(const rapidjson::Value& element,
                                            const std::string& where, const Pointers& at,
                                            const CarbonMapping& mapping) {
  const rapidjson::Value* const value = at.value.Get(element);
  if (value == nullptr || value->IsNull()) return std::optional<Reading>();
  if (!value->IsNumber()) {
    return bad(where + mapping.value, fmt::format("a number is expected, not {}", kind_of(*value)));
  }
  const rapidjson::Value* const time = at.time.Get(element);
  if (time == nullptr) return bad(where + mapping.time, "there is nothing, a time is expected");
  std::optional<TimePoint> when;
  if (time->IsString()) {
    when = models::carbon::parse_time({time->GetString(), time->GetStringLength()});
  } else if (time->IsInt64()) {
    when = models::carbon::parse_time(fmt::format("{}", time->GetInt64()));
  }
  if (!when) {
    return bad(where + mapping.time,
               "this is no time such as 2026-11-20T21:00:00Z, and no Unix seconds");
  }
  const double grams = value->GetDouble() * *grams_in(mapping.unit);
  if (const auto problem = models::carbon::grams_problem(grams); !problem.empty()) {
    return bad(where + mapping.value, fmt::format("{} g/kWh: {}", grams, problem));
  }
  return std::optional<Reading>(Reading{*when, grams});
}

}  // namespace

std::optional<double> grams_in(std::string_view unit) {
  for (const Unit& one : kUnits) {
    if (one.name == unit) return one.grams;
  }
  return std::nullopt;
}

Result<void> check(const CarbonMapping& mapping) {
  const auto wrong = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  const std::array<std::pair<std::string_view, const std::string*>, 3> pointers{
      {{"list", &mapping.list}, {"time", &mapping.time}, {"value", &mapping.value}}};
  for (const auto& [name, text] : pointers) {
    if (!rapidjson::Pointer(text->c_str()).IsValid()) {
      return wrong(
          fmt::format("{}: \"{}\" is no JSON pointer such as /data/0/intensity", name, *text));
    }
  }
  if (!grams_in(mapping.unit)) {
    return wrong(
        fmt::format("unit: \"{}\" is not known; there are: {}", mapping.unit, kCarbonUnits));
  }
  return {};
}

Result<std::vector<Reading>> read_carbon_json(std::string_view json, const CarbonMapping& mapping) {
  if (auto good = check(mapping); !good) return good.error();
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError()) {
    return bad("byte " + fmt::format("{}", document.GetErrorOffset()), "this is no JSON");
  }
  const Pointers at(mapping);
  const rapidjson::Value* const list = at.list.Get(document);
  if (list == nullptr) return bad(mapping.list, "there is nothing, a list is expected");
  std::map<TimePoint, double> found;
  const auto take = [&](const rapidjson::Value& element, const std::string& where) -> Result<void> {
    auto reading = read_element(element, where, at, mapping);
    if (!reading) return reading.error();
    if (*reading) found[(*reading)->at] = (*reading)->grams_per_kwh;
    return {};
  };
  if (list->IsObject()) {
    if (auto taken = take(*list, mapping.list); !taken) return taken.error();
  } else if (list->IsArray()) {
    if (list->Size() > kMostElements) {
      return bad(mapping.list, fmt::format("more than {} elements", kMostElements));
    }
    for (rapidjson::SizeType i = 0; i < list->Size(); ++i) {
      if (auto taken = take((*list)[i], fmt::format("{}/{}", mapping.list, i)); !taken) {
        return taken.error();
      }
    }
  } else {
    return bad(mapping.list, fmt::format("a list is expected, not {}", kind_of(*list)));
  }
  std::vector<Reading> out;
  out.reserve(found.size());
  for (const auto& [when, grams] : found) out.push_back({when, grams});
  return out;
}

}  // namespace kwatt::telemetry
