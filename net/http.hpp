#pragma once
// HTTP messages and limits, as values. No Boost header here: everyone may include this.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace kwatt::net {

// Header names compare without case.
class Headers {
 public:
  using Entry = std::pair<std::string, std::string>;
  Headers() = default;
  Headers(std::initializer_list<Entry> entries) : entries_(entries) {}
  std::string_view get(std::string_view name) const;  // "": absent; the first one counts
  void set(std::string_view name, std::string_view value);
  void add(std::string_view name, std::string_view value);  // beside others of the same name
  void erase(std::string_view name);
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

// Request and Response have constructors on purpose: GCC 12 copies the braces of an aggregate
// inside `co_await client.send({...})` bit by bit, which breaks its strings (free of an invalid
// pointer).
struct Request {
  Request() = default;
  explicit Request(std::string verb, std::string where = "/", Headers fields = {},
                   std::string content = {})
      : method(std::move(verb)),
        target(std::move(where)),
        headers(std::move(fields)),
        body(std::move(content)) {}

  std::string method = "GET";
  std::string target = "/";  // origin-form, percent-encoded
  Headers headers;
  std::string body;
  std::string peer;  // server side: address of the caller
};

struct Response {
  Response() = default;
  explicit Response(int code, Headers fields = {}, std::string content = {})
      : status(code), headers(std::move(fields)), body(std::move(content)) {}

  int status = 200;
  Headers headers;
  std::string body;
};

// Bounds of one exchange. A peer that exceeds one gets an error (or, on the server, 413/431/408).
struct Limits {
  Duration connect{10'000};  // TCP and TLS handshake
  Duration header{30'000};   // from the request sent to the response header
  Duration total{60'000};    // the whole exchange; streams: not applied
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 8 * 1024 * 1024;
};

// Where an HTTP client connects. `host` without brackets for IPv6.
struct Origin {
  bool tls = true;
  std::string host{};
  std::uint16_t port = 443;
  std::string authority() const;  // for the Host header: brackets and port as needed
};

// "https://10.0.0.7:8000/redfish/v1" → origin and path ("/redfish/v1"; "/" if none).
// Errors: parse, with what is wrong and which schemes are known (http, https).
struct Url {
  Origin origin;
  std::string path;  // with query
};
Result<Url> parse_url(std::string_view text);

// PEM texts; empty: not given. Client: without ca_pem the system's roots count. Server: with ca_pem
// every caller must have a certificate issued by it; without, nobody is asked for one.
struct TlsConfig {
  std::string ca_pem{};
  std::string certificate_pem{}, private_key_pem{};  // client certificate, or the server's own
  std::string server_name{};                         // overrides the origin's host for verification
  bool operator==(const TlsConfig&) const = default;
};

}  // namespace kwatt::net
