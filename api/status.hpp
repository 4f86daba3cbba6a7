#pragma once
// metav1.Status: how the API server says what went wrong.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kwatt::api {

struct StatusCause {
  std::string reason, message, field;
};

struct StatusDetails {
  std::string name, kind, uid;
  std::vector<StatusCause> causes;
  std::int64_t retry_after_seconds = 0;
};

struct Status {
  std::string kind;  // "Status" if the document really was one
  std::string status;
  std::string message, reason;  // the server's text, untrusted
  std::int64_t code = 0;        // HTTP status
  StatusDetails details;

  bool is_status() const { return kind == "Status"; }
  bool has_cause(std::string_view cause) const {
    for (const StatusCause& c : details.causes) {
      if (c.reason == cause) return true;
    }
    return false;
  }
};

}  // namespace kwatt::api
