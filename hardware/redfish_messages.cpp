#include "hardware/redfish_messages.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"

namespace kwatt::hardware::redfish {
namespace {

constexpr double kImplausibleWatts = 1e6;
constexpr std::size_t kLongestLink = 1024;
constexpr std::size_t kMostResetTypes = 64;

Result<rapidjson::Document> parse_resource(const std::string& body) {
  auto document = parse_json(body);
  if (!document) return document.error();
  if (!document->IsObject()) {
    return fail(ErrorCode::protocol, "the answer is not a resource", excerpt(body));
  }
  return document;
}

MachinePower power_of(std::string_view state) {
  if (state == "On") return MachinePower::on;
  if (state == "Off") return MachinePower::off;
  if (state == "PoweringOn") return MachinePower::powering_on;
  if (state == "PoweringOff") return MachinePower::powering_off;
  return MachinePower::unknown;  // Paused, and null while a controller starts
}

std::vector<std::string> texts_of(const rapidjson::Value* list) {
  std::vector<std::string> texts;
  if (list == nullptr || !list->IsArray()) return texts;
  for (const rapidjson::Value& value : list->GetArray()) {
    if (value.IsString() && texts.size() < kMostResetTypes) texts.emplace_back(value.GetString());
  }
  return texts;
}

// An optional link: "" if absent.
Result<std::string> optional_link(std::string_view link) {
  if (link.empty()) return std::string{};
  return local_target(link);
}

ErrorCode code_of(int status) {
  switch (status) {
    case 401:
      return ErrorCode::unauthorized;
    case 403:
      return ErrorCode::forbidden;
    case 404:
      return ErrorCode::not_found;
    case 405:
    case 501:
      return ErrorCode::unsupported;
    case 409:
    case 412:
      return ErrorCode::conflict;
    case 429:
      return ErrorCode::too_many_requests;
    case 503:
      return ErrorCode::unavailable;
    default:
      return ErrorCode::protocol;
  }
}

// The messages of a Redfish error body, most specific first; "" if it is not one.
std::string messages_of(const std::string& body) {
  const auto document = parse_json(body);
  if (!document) return {};
  std::vector<std::string> messages;
  const rapidjson::Value* infos = find(*document, {"error", "@Message.ExtendedInfo"});
  if (infos != nullptr && infos->IsArray()) {
    for (const rapidjson::Value& info : infos->GetArray()) {
      std::string_view text = text_at(info, {"Message"});
      if (text.empty()) text = text_at(info, {"MessageId"});
      if (!text.empty()) messages.emplace_back(text);
    }
  }
  const std::string_view general = text_at(*document, {"error", "message"});
  if (messages.empty() && !general.empty()) messages.emplace_back(general);
  return excerpt(fmt::format("{}", fmt::join(messages, " ")), 500);
}

}  // namespace

Result<std::string> local_target(std::string_view link) {
  const bool plain = link.size() <= kLongestLink && link.starts_with("/") &&
                     !link.starts_with("//") && std::all_of(link.begin(), link.end(), [](char c) {
                       return c > 0x20 && c < 0x7f && c != '#';
                     });
  if (!plain) {
    return fail(ErrorCode::protocol, "a link does not stay on the service", excerpt(link));
  }
  return std::string(link);
}

Result<System> parse_system(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  System system;
  const rapidjson::Value* state = find(*document, {"PowerState"});
  if (state == nullptr) {
    return fail(ErrorCode::protocol, "the resource has no PowerState: is it a ComputerSystem?",
                excerpt(body));
  }
  system.power = power_of(text_at(*document, {"PowerState"}));
  if (const auto* reset = find(*document, {"Actions", "#ComputerSystem.Reset"})) {
    auto target = optional_link(text_at(*reset, {"target"}));
    if (!target) return target.error();
    system.reset_target = *target;
    system.allowed = texts_of(find(*reset, {"ResetType@Redfish.AllowableValues"}));
    auto info = optional_link(text_at(*reset, {"@Redfish.ActionInfo"}));
    if (!info) return info.error();
    system.action_info = *info;
  }
  if (const auto* chassis = first(*document, {"Links", "Chassis"})) {
    auto link = optional_link(text_at(*chassis, {"@odata.id"}));
    if (!link) return link.error();
    system.chassis = *link;
  }
  return system;
}

Result<std::vector<std::string>> parse_reset_types(const std::string& action_info_body) {
  auto document = parse_resource(action_info_body);
  if (!document) return document.error();
  const rapidjson::Value* parameters = find(*document, {"Parameters"});
  if (parameters != nullptr && parameters->IsArray()) {
    for (const rapidjson::Value& parameter : parameters->GetArray()) {
      if (text_at(parameter, {"Name"}) == "ResetType") {
        return texts_of(find(parameter, {"AllowableValues"}));
      }
    }
  }
  return std::vector<std::string>{};
}

Result<std::string> parse_power_link(const std::string& chassis_body) {
  auto document = parse_resource(chassis_body);
  if (!document) return document.error();
  return optional_link(text_at(*document, {"Power", "@odata.id"}));
}

Result<Power> parse_power(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  Power power;
  power.etag = std::string(text_at(*document, {"@odata.etag"}));
  const rapidjson::Value* control = first(*document, {"PowerControl"});
  if (control == nullptr) return power;
  power.limitable = true;
  power.consumed_watts = number_at(*control, {"PowerConsumedWatts"});
  return power;
}

Result<std::optional<Milliwatts>> reading_of(const Power& power) {
  if (!power.consumed_watts) return std::optional<Milliwatts>{};
  if (*power.consumed_watts < 0 || *power.consumed_watts > kImplausibleWatts) {
    return fail(
        ErrorCode::protocol,
        fmt::format("the power meter says {} W, which no machine draws", *power.consumed_watts));
  }
  return std::optional{Milliwatts{std::llround(*power.consumed_watts * 1000)}};
}

Result<std::string> reset_type(const System& system, Reset reset) {
  const auto offered = [&](std::string_view type) {
    return system.allowed.empty() ||
           std::find(system.allowed.begin(), system.allowed.end(), type) != system.allowed.end();
  };
  std::string_view wanted;
  switch (reset) {
    case Reset::on:
      wanted = offered("On") ? "On" : "ForceOn";
      break;
    case Reset::graceful_shutdown:
      wanted = "GracefulShutdown";
      break;
    case Reset::force_off:
      wanted = "ForceOff";
      break;
  }
  if (system.reset_target.empty()) {
    return fail(ErrorCode::unsupported, "the machine offers no reset action");
  }
  if (!offered(wanted)) {
    return fail(ErrorCode::unsupported, fmt::format("the machine does not offer {}, only {}",
                                                    wanted, fmt::join(system.allowed, ", ")));
  }
  return std::string(wanted);
}

std::string reset_body(const std::string& type) {
  return fmt::format(R"({{"ResetType":"{}"}})", type);
}

std::string limit_body(std::optional<Milliwatts> limit) {
  std::string value = "null";
  if (limit) {
    // Services take whole watts for sure; a part is written only where it was asked for.
    value = limit->count() % 1000 == 0
                ? fmt::format("{}", limit->count() / 1000)
                : fmt::format("{}.{:03}", limit->count() / 1000, limit->count() % 1000);
  }
  return fmt::format(R"({{"PowerControl":[{{"PowerLimit":{{"LimitInWatts":{}}}}}]}})", value);
}

std::optional<Error> error_of(const net::Response& response) {
  if (response.status >= 200 && response.status < 300) return std::nullopt;
  Error error;
  error.code = code_of(response.status);
  if (response.status >= 300 && response.status < 400) {
    error.message =
        fmt::format("the service redirects (HTTP {}), which is refused", response.status);
    error.server_text = excerpt(response.headers.get("Location"));
    return error;
  }
  error.message = fmt::format("the service answered HTTP {}", response.status);
  error.server_text = messages_of(response.body);
  if (error.server_text.empty()) error.server_text = excerpt(response.body);
  const auto seconds = response.headers.get("Retry-After");
  if (!seconds.empty()) {
    if (const auto pause = parse_go_duration(std::string(seconds) + "s")) {
      if (*pause >= Duration{0}) error.retry_after = *pause;
    }
  }
  return error;
}

}  // namespace kwatt::hardware::redfish
