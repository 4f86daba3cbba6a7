#include "net/message_writer.hpp"

#include <algorithm>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

namespace kwatt::net {

namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view symbols = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           symbols.find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
}

bool is_target(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7F;
  });
}

bool is_framing(std::string_view name) {
  constexpr std::string_view ours[] = {"content-length", "transfer-encoding", "connection"};
  return std::any_of(std::begin(ours), std::end(ours), [name](std::string_view own) {
    return std::equal(name.begin(), name.end(), own.begin(), own.end(),
                      [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
  });
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

Result<void> append_fields(std::string& out, const Headers& headers) {
  for (const auto& [name, value] : headers) {
    // The value may be a secret: only the name is told.
    if (!is_token(name) || !is_field_value(value))
      return fail(ErrorCode::invalid_argument, fmt::format("header \"{}\" is not valid", name));
    if (!is_framing(name)) append_field(out, name, value);
  }
  return {};
}

}  // namespace

Result<std::string> request_head(const Request& request, const Origin& origin) {
  if (!is_token(request.method))
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not an HTTP method", request.method));
  if (!is_target(request.target))
    return fail(ErrorCode::invalid_argument, "the request target is not percent-encoded");

  std::string out = request.method + " " + request.target + " HTTP/1.1\r\n";
  if (request.headers.get("Host").empty()) append_field(out, "Host", origin.authority());
  if (request.headers.get("User-Agent").empty())
    append_field(out, "User-Agent", "kwatt/" KWATT_VERSION);
  if (auto fields = append_fields(out, request.headers); !fields) return fields.error();
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (has_body) append_field(out, "Content-Length", std::to_string(request.body.size()));
  out += "\r\n";
  return out;
}

Result<std::string> response_head(const Response& response, ResponseShape shape) {
  namespace http = boost::beast::http;
  if (response.status < 200 || response.status > 999)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a final HTTP status", response.status));
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                std::string_view{reason.data(), reason.size()});
  if (auto fields = append_fields(out, response.headers); !fields) return fields.error();
  if (response.status != 204 && response.status != 304)
    append_field(out, "Content-Length", std::to_string(response.body.size()));
  if (!shape.keep_alive)
    append_field(out, "Connection", "close");
  else if (shape.http_1_0)
    append_field(out, "Connection", "keep-alive");
  out += "\r\n";
  return out;
}

bool is_idempotent(std::string_view method) {
  constexpr std::string_view methods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
  return std::find(std::begin(methods), std::end(methods), method) != std::end(methods);
}

}  // namespace kwatt::net
