#pragma once
// What an answer that is not 2xx means: metav1.Status, read, and as our Error.
#include <optional>
#include <string_view>

#include "api/status.hpp"
#include "base/result.hpp"

namespace kwatt::kube {

// The Status of an HTTP answer; made up from the HTTP status if the body is none. The header
// Retry-After (seconds) outranks details.retryAfterSeconds.
api::Status status_of_response(int http_status, std::string_view retry_after,
                               std::string_view body);

// By reason, else by code.
ErrorCode code_of(const api::Status& status);
// By cause, not by text: the server has not caught up yet with the version we asked for.
bool resource_version_too_large(const api::Status& status);

// `doing` says what was asked for, for example "GET /api/v1/nodes".
Error to_error(const api::Status& status, std::string_view doing);

// Retry-After in seconds, as Kubernetes sends it, an hour at most; nullopt: absent or a date.
std::optional<Duration> parse_retry_after(std::string_view header);

}  // namespace kwatt::kube
