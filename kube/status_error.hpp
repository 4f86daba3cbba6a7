#pragma once
// What an answer that is not 2xx means: metav1.Status, read, and as our Error.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/http.hpp"

namespace kwatt::kube {

// metav1.Status, as far as somebody acts on it.
struct Status {
  int code = 0;
  std::string reason, message;
  std::vector<std::string> causes;  // details.causes[].reason
  std::optional<Duration> retry_after = std::nullopt;
};

// nullopt: not a Status.
std::optional<Status> parse_status(std::string_view json);

// The Status of an HTTP answer; made up from the HTTP status if the body is none. The header
// Retry-After (seconds) outranks details.retryAfterSeconds.
Status status_of_response(int http_status, std::string_view retry_after, std::string_view body);

// By reason, else by code.
ErrorCode code_of(const Status& status);
// By cause, not by text: the server has not caught up yet with the version we asked for.
bool resource_version_too_large(const Status& status);

// `doing` says what was asked for, for example "GET /api/v1/nodes".
Error to_error(const Status& status, std::string_view doing);

// Retry-After in seconds, as Kubernetes sends it; nullopt: absent or a date.
std::optional<Duration> parse_retry_after(std::string_view header);

}  // namespace kwatt::kube
