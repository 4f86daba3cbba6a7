#include "hardware/redfish_messages.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"
#include "hardware/redfish_resource.hpp"

namespace kwatt::hardware::redfish {
namespace {

constexpr std::size_t kLongestLink = 1024;
constexpr std::size_t kLongestToken = 4096;
constexpr std::size_t kMostResetTypes = 64;
constexpr std::size_t kMostChassis = 8;
constexpr std::size_t kMostMembers = 256;

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

// The links of a list of references, at most `most`.
Result<std::vector<std::string>> links_of(const rapidjson::Value* list, std::size_t most) {
  std::vector<std::string> links;
  if (list == nullptr || !list->IsArray()) return links;
  for (const rapidjson::Value& item : list->GetArray()) {
    if (links.size() == most) break;
    auto link = local_target(text_at(item, {"@odata.id"}));
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  return links;
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

Result<rapidjson::Document> parse_resource(const std::string& body) {
  auto document = parse_json(body);
  if (!document) return document.error();
  if (!document->IsObject()) {
    return fail(ErrorCode::protocol, "the answer is not a resource", excerpt(body));
  }
  return document;
}

Result<std::string> optional_link(std::string_view link) {
  if (link.empty()) return std::string{};
  return local_target(link);
}

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
  auto chassis = links_of(find(*document, {"Links", "Chassis"}), kMostChassis);
  if (!chassis) return chassis.error();
  system.chassis = std::move(*chassis);
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

Result<Root> parse_root(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  Root root;
  auto systems = optional_link(text_at(*document, {"Systems", "@odata.id"}));
  if (!systems) return systems.error();
  root.systems = std::move(*systems);
  auto sessions = optional_link(text_at(*document, {"Links", "Sessions", "@odata.id"}));
  if (!sessions) return sessions.error();
  root.sessions = std::move(*sessions);
  return root;
}

Result<std::vector<std::string>> parse_members(const std::string& body) {
  auto document = parse_resource(body);
  if (!document) return document.error();
  const rapidjson::Value* members = find(*document, {"Members"});
  if (members == nullptr || !members->IsArray()) {
    return fail(ErrorCode::protocol, "the resource has no Members: is it a collection?",
                excerpt(body));
  }
  return links_of(members, kMostMembers);
}

Result<Session> parse_session(const net::Response& answer) {
  Session session;
  session.token = std::string(answer.headers.get("X-Auth-Token"));
  const bool plain = !session.token.empty() && session.token.size() <= kLongestToken &&
                     std::all_of(session.token.begin(), session.token.end(),
                                 [](char c) { return c > 0x20 && c < 0x7f; });
  if (!plain) {
    return fail(ErrorCode::protocol, "the service opened a session without an X-Auth-Token");
  }
  std::string place(answer.headers.get("Location"));
  // Location may be absolute; only its path is used, on the service we talk to.
  if (place.starts_with("http://") || place.starts_with("https://")) {
    const auto url = net::parse_url(place);
    place = url ? url->path : std::string{};
  }
  if (place.empty()) {
    if (const auto document = parse_json(answer.body)) {
      place = std::string(text_at(*document, {"@odata.id"}));
    }
  }
  if (auto path = local_target(place)) session.path = std::move(*path);
  return session;
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

std::string session_body(const Credentials& credentials) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  const auto text = [&](std::string_view value) {
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  text("UserName");
  text(credentials.user);
  text("Password");
  text(credentials.password);
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

bool refuses_credentials(const net::Response& response) {
  if (response.status == 401 || response.status == 403) return true;
  if (response.status != 400) return false;
  const auto document = parse_json(response.body);
  if (!document) return false;
  const rapidjson::Value* infos = find(*document, {"error", "@Message.ExtendedInfo"});
  if (infos == nullptr || !infos->IsArray()) return false;
  return std::any_of(infos->Begin(), infos->End(), [](const rapidjson::Value& info) {
    const std::string_view id = text_at(info, {"MessageId"});
    return id.find("Unauthorized") != std::string_view::npos ||
           id.find("AuthenticationFailure") != std::string_view::npos;
  });
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
