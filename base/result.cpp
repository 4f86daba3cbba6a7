#include "base/result.hpp"

#include <stdexcept>

namespace kwatt {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::parse:
      return "parse";
    case ErrorCode::unauthorized:
      return "unauthorized";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::expired:
      return "expired";
    case ErrorCode::too_many_requests:
      return "too_many_requests";
    case ErrorCode::out_of_range:
      return "out_of_range";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::io:
      return "io";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

Error Error::with_context(std::string_view context) const {
  Error wrapped = *this;
  wrapped.message = std::string(context) + ": " + message;
  return wrapped;
}

std::string Error::text() const {
  if (server_text.empty()) return message;
  return message + " (answer: " + server_text + ")";
}

bool Error::transient() const {
  switch (code) {
    case ErrorCode::too_many_requests:
    case ErrorCode::timeout:
    case ErrorCode::unavailable:
    case ErrorCode::conflict:
    case ErrorCode::expired:
    case ErrorCode::internal:
      return true;
    default:
      return false;
  }
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::logic_error("value() of an error: " + error.text());
}

}  // namespace kwatt
