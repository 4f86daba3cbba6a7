#include "kube/status_error.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/decode.hpp"

namespace kwatt::kube {
namespace {

// A body may claim any wait; nobody sleeps longer than this because of one.
constexpr std::int64_t kLongestRetryAfter = 3600;
constexpr std::size_t kMessageLimit = 4096;

}  // namespace

std::optional<Duration> parse_retry_after(std::string_view header) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), count);
  if (error != std::errc{} || end != header.data() + header.size() || count < 0) {
    return std::nullopt;
  }
  return std::chrono::seconds{std::min(count, kLongestRetryAfter)};
}

api::Status status_of_response(int http_status, std::string_view retry_after,
                               std::string_view body) {
  api::Status status;
  if (!api::decode(body, status) || !status.is_status()) {
    status = {};
    status.message = std::string(body.substr(0, kMessageLimit));
  }
  if (status.code <= 0 || status.code > 999) status.code = http_status;
  if (const auto after = parse_retry_after(retry_after)) {
    status.details.retry_after_seconds =
        std::chrono::duration_cast<std::chrono::seconds>(*after).count();
  }
  return status;
}

ErrorCode code_of(const api::Status& status) {
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

bool resource_version_too_large(const api::Status& status) {
  return status.has_cause("ResourceVersionTooLarge");
}

Error to_error(const api::Status& status, std::string_view doing) {
  Error error = fail(code_of(status),
                     status.reason.empty() ? fmt::format("{}: HTTP {}", doing, status.code)
                                           : fmt::format("{}: HTTP {} {}", doing, status.code,
                                                         status.reason.substr(0, 64)),
                     status.message.substr(0, kMessageLimit));
  if (const auto seconds = status.details.retry_after_seconds; seconds > 0) {
    error.retry_after = std::chrono::seconds{std::min(seconds, kLongestRetryAfter)};
  }
  return error;
}

}  // namespace kwatt::kube
