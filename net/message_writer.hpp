#pragma once
// Private to net/. Writes the header of one HTTP/1.1 message; the body is sent as it is after it.
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace kwatt::net {

// Errors: invalid_argument for a method, target or header that could smuggle in another line.
// Host, Content-Length and Connection are ours; what the caller put there counts only for Host.
Result<std::string> request_head(const Request& request, const Origin& origin);

struct ResponseShape {
  bool keep_alive = true;
  bool http_1_0 = false;
};
// Content-Length is that of the body also for HEAD; without one for 204 and 304.
Result<std::string> response_head(const Response& response, ResponseShape shape);

// GET, HEAD, OPTIONS, PUT, DELETE: sending one twice does no more than sending it once.
bool is_idempotent(std::string_view method);

}  // namespace kwatt::net
