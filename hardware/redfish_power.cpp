#include "hardware/redfish_power.hpp"

#include <cmath>

#include <fmt/format.h>

#include "hardware/excerpt.hpp"
#include "hardware/redfish_resource.hpp"

namespace kwatt::hardware::redfish {
namespace {

constexpr double kImplausibleWatts = 1e6;

Milliwatts milliwatts_of(double watts) {
  return Milliwatts{std::llround(watts * 1000)};
}

// A bound of the range as the service says it; what makes no sense as one says nothing.
std::optional<Milliwatts> bound_of(const std::optional<double>& watts) {
  if (!watts || *watts <= 0 || *watts > kImplausibleWatts) return std::nullopt;
  return milliwatts_of(*watts);
}

// Services take whole watts for sure; a part is written only where it was asked for.
std::string number(Milliwatts limit) {
  return limit.count() % 1000 == 0
             ? fmt::format("{}", limit.count() / 1000)
             : fmt::format("{}.{:03}", limit.count() / 1000, limit.count() % 1000);
}

Result<std::string> link_at(const std::string& body, std::string_view property) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  return optional_link(text_at(*document, {property, "@odata.id"}));
}

}  // namespace

Result<Chassis> parse_chassis(const std::string& body) {
  Chassis chassis;
  const struct {
    std::string_view property;
    std::string& link;
  } parts[] = {{"EnvironmentMetrics", chassis.environment},
               {"Power", chassis.power},
               {"PowerSubsystem", chassis.subsystem}};
  for (const auto& part : parts) {
    auto link = link_at(body, part.property);
    if (!link) return link.error();
    part.link = std::move(*link);
  }
  return chassis;
}

Result<Power> parse_power(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  Power power;
  power.etag = std::string(text_at(*document, {"@odata.etag"}));
  const rapidjson::Value* control = first(*document, {"PowerControl"});
  if (control == nullptr) return power;
  power.metered = find(*control, {"PowerConsumedWatts"}) != nullptr;
  power.consumed_watts = number_at(*control, {"PowerConsumedWatts"});
  power.limitable = find(*control, {"PowerLimit", "LimitInWatts"}) != nullptr;
  power.limit = number_at(*control, {"PowerLimit", "LimitInWatts"});
  power.highest = number_at(*control, {"PowerCapacityWatts"});
  return power;
}

Result<Power> parse_environment(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  Power power;
  power.etag = std::string(text_at(*document, {"@odata.etag"}));
  power.metered = find(*document, {"PowerWatts"}) != nullptr;
  power.consumed_watts = number_at(*document, {"PowerWatts", "Reading"});
  const rapidjson::Value* limit = find(*document, {"PowerLimitWatts"});
  if (limit == nullptr || !limit->IsObject()) return power;
  power.limitable = find(*limit, {"SetPoint"}) != nullptr;
  power.has_mode = find(*limit, {"ControlMode"}) != nullptr;
  if (text_at(*limit, {"ControlMode"}) != "Disabled") power.limit = number_at(*limit, {"SetPoint"});
  power.lowest = number_at(*limit, {"AllowableMin"});
  power.highest = number_at(*limit, {"AllowableMax"});
  return power;
}

Result<std::string> parse_supplies_link(const std::string& body) {
  return link_at(body, "PowerSupplies");
}

Result<std::string> parse_metrics_link(const std::string& body) {
  return link_at(body, "Metrics");
}

Result<Power> parse_supply_metrics(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  Power power;
  power.metered = find(*document, {"InputPowerWatts"}) != nullptr;
  power.consumed_watts = number_at(*document, {"InputPowerWatts", "Reading"});
  return power;
}

Result<std::optional<Milliwatts>> reading_of(const Power& power) {
  if (!power.consumed_watts) return std::optional<Milliwatts>{};
  if (*power.consumed_watts < 0 || *power.consumed_watts > kImplausibleWatts) {
    return fail(
        ErrorCode::protocol,
        fmt::format("the power meter says {} W, which no machine draws", *power.consumed_watts));
  }
  return std::optional{milliwatts_of(*power.consumed_watts)};
}

Result<PowerLimit> limit_of(const Power& power) {
  PowerLimit out;
  if (power.limit && (*power.limit < 0 || *power.limit > kImplausibleWatts)) {
    return fail(ErrorCode::protocol,
                fmt::format("the power limit is said to be {} W", *power.limit));
  }
  out.limit = bound_of(power.limit);
  out.lowest = bound_of(power.lowest);
  out.highest = bound_of(power.highest);
  return out;
}

std::string power_limit_body(std::optional<Milliwatts> limit) {
  return fmt::format(R"({{"PowerControl":[{{"PowerLimit":{{"LimitInWatts":{}}}}}]}})",
                     limit ? number(*limit) : "null");
}

std::string environment_limit_body(std::optional<Milliwatts> limit, bool has_mode) {
  if (!has_mode) {
    return fmt::format(R"({{"PowerLimitWatts":{{"SetPoint":{}}}}})",
                       limit ? number(*limit) : "null");
  }
  if (!limit) return R"({"PowerLimitWatts":{"ControlMode":"Disabled"}})";
  return fmt::format(R"({{"PowerLimitWatts":{{"ControlMode":"Automatic","SetPoint":{}}}}})",
                     number(*limit));
}

}  // namespace kwatt::hardware::redfish
