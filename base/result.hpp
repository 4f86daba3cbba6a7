#pragma once
// Errors are values: every function that can fail returns Result<T>.
#include <optional>
#include <string>
#include <string_view>

#include <boost/system/result.hpp>

#include "base/time.hpp"

namespace kwatt {

// What went wrong, as far as a caller would act on it. HTTP and Kubernetes statuses map onto these.
enum class ErrorCode {
  invalid_argument,   // the caller or a user gave a value that can never work (400, 422)
  parse,              // foreign bytes that are not what they claim to be
  unauthorized,       // 401
  forbidden,          // 403, or not on an allow-list
  not_found,          // 404
  already_exists,     // 409 AlreadyExists
  conflict,           // 409 Conflict: somebody else wrote first
  expired,            // 410 Gone or Expired: the resource version is too old
  too_many_requests,  // 429: rate limit, or a PodDisruptionBudget that forbids an eviction
  out_of_range,       // outside what the hardware offers
  unsupported,        // the peer does not offer this
  timeout,            // no answer in time (also 504)
  unavailable,        // cannot connect, connection lost, 503
  protocol,           // the peer broke its protocol, or answered with an unexpected status
  cancelled,          // we stopped it
  io,                 // a local file or device
  internal,           // 500, or a bug of ours
};

// One stable snake_case word per code, for logs and metric labels.
std::string_view to_string(ErrorCode code);

// An error: a code to act on, a sentence of ours, and, apart from it, the text of the peer.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;      // ours; a sentence without a final period, most general context first
  std::string server_text;  // what the peer said, verbatim and untrusted; may be empty
  std::optional<Duration> retry_after = std::nullopt;  // when the peer told us when to come back

  // The same error with "context: " put before the message.
  Error with_context(std::string_view context) const;
  // Message and server text in one line, for logs and conditions.
  std::string text() const;
  // True when the same request may succeed later without anybody changing anything.
  bool transient() const;
};

template <class T>
using Result = boost::system::result<T, Error>;

// Used by boost::system::result when value() is called on an error: a bug of ours.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

// Error with formatted message; `return fail(ErrorCode::parse, fmt::format(...))`.
inline Error fail(ErrorCode code, std::string message, std::string server_text = {}) {
  return Error{code, std::move(message), std::move(server_text)};
}

}  // namespace kwatt
