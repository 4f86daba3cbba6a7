#include "kube/status_error.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <rapidjson/document.h>

namespace kwatt::kube {
namespace {

// A body may claim any wait; nobody sleeps longer than this because of one.
constexpr std::int64_t kLongestRetryAfter = 3600;
constexpr std::size_t kMessageLimit = 4096;

using Value = rapidjson::Value;

const Value* member(const Value& object, const char* key) {
  const auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

std::string text(const Value& object, const char* key) {
  const Value* value = member(object, key);
  if (value == nullptr || !value->IsString()) return {};
  return std::string(value->GetString(), value->GetStringLength()).substr(0, kMessageLimit);
}

std::int64_t integer(const Value& object, const char* key) {
  const Value* value = member(object, key);
  return value != nullptr && value->IsInt64() ? value->GetInt64() : 0;
}

Duration seconds(std::int64_t count) {
  return std::chrono::seconds{std::clamp<std::int64_t>(count, 0, kLongestRetryAfter)};
}

}  // namespace

std::optional<Duration> parse_retry_after(std::string_view header) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), count);
  if (error != std::errc{} || end != header.data() + header.size() || count < 0) {
    return std::nullopt;
  }
  return seconds(count);
}

std::optional<Status> parse_status(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  if (text(document, "kind") != "Status") return std::nullopt;
  Status status;
  status.code = static_cast<int>(std::clamp<std::int64_t>(integer(document, "code"), 0, 999));
  status.reason = text(document, "reason");
  status.message = text(document, "message");
  const Value* details = member(document, "details");
  if (details == nullptr || !details->IsObject()) return status;
  if (const auto after = integer(*details, "retryAfterSeconds"); after > 0) {
    status.retry_after = seconds(after);
  }
  const Value* causes = member(*details, "causes");
  if (causes == nullptr || !causes->IsArray()) return status;
  for (const Value& cause : causes->GetArray()) {
    if (cause.IsObject()) status.causes.push_back(text(cause, "reason"));
  }
  return status;
}

Status status_of_response(int http_status, std::string_view retry_after, std::string_view body) {
  Status status = parse_status(body).value_or(Status{});
  if (status.code == 0) status.code = http_status;
  if (status.message.empty()) status.message = std::string(body.substr(0, kMessageLimit));
  if (const auto after = parse_retry_after(retry_after)) status.retry_after = after;
  return status;
}

ErrorCode code_of(const Status& status) {
  struct Entry {
    std::string_view reason;
    ErrorCode code;
  };
  static constexpr Entry kReasons[] = {
      {"Unauthorized", ErrorCode::unauthorized},
      {"Forbidden", ErrorCode::forbidden},
      {"NotFound", ErrorCode::not_found},
      {"AlreadyExists", ErrorCode::already_exists},
      {"Conflict", ErrorCode::conflict},
      {"Gone", ErrorCode::expired},
      {"Expired", ErrorCode::expired},
      {"Invalid", ErrorCode::invalid_argument},
      {"BadRequest", ErrorCode::invalid_argument},
      {"RequestEntityTooLarge", ErrorCode::invalid_argument},
      {"TooManyRequests", ErrorCode::too_many_requests},
      {"MethodNotAllowed", ErrorCode::unsupported},
      {"NotAcceptable", ErrorCode::unsupported},
      {"UnsupportedMediaType", ErrorCode::unsupported},
      {"ServerTimeout", ErrorCode::timeout},
      {"Timeout", ErrorCode::timeout},
      {"StoreReadError", ErrorCode::internal},
      {"InternalError", ErrorCode::internal},
      {"ServiceUnavailable", ErrorCode::unavailable},
  };
  for (const Entry& entry : kReasons) {
    if (entry.reason == status.reason) return entry.code;
  }
  switch (status.code) {
    case 400:
    case 413:
    case 422:
      return ErrorCode::invalid_argument;
    case 401:
      return ErrorCode::unauthorized;
    case 403:
      return ErrorCode::forbidden;
    case 404:
      return ErrorCode::not_found;
    case 405:
    case 406:
    case 415:
      return ErrorCode::unsupported;
    case 409:
      return ErrorCode::conflict;
    case 410:
      return ErrorCode::expired;
    case 429:
      return ErrorCode::too_many_requests;
    case 502:
    case 503:
      return ErrorCode::unavailable;
    case 504:
      return ErrorCode::timeout;
    default:
      return status.code >= 500 ? ErrorCode::internal : ErrorCode::protocol;
  }
}

bool resource_version_too_large(const Status& status) {
  return std::find(status.causes.begin(), status.causes.end(), "ResourceVersionTooLarge") !=
         status.causes.end();
}

Error to_error(const Status& status, std::string_view doing) {
  Error error =
      fail(code_of(status),
           status.reason.empty() ? fmt::format("{}: HTTP {}", doing, status.code)
                                 : fmt::format("{}: HTTP {} {}", doing, status.code, status.reason),
           status.message);
  error.retry_after = status.retry_after;
  return error;
}

}  // namespace kwatt::kube
