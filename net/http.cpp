#include "net/http.hpp"

#include <algorithm>
#include <charconv>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

namespace kwatt::net {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// Names that DNS and the Host header can carry; percent-encoded oddities are refused.
bool is_host_name(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '.' ||
           c == '_';
  });
}

}  // namespace

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (same_name(key, name)) return value;
  return {};
}

void Headers::set(std::string_view name, std::string_view value) {
  for (auto& [key, old] : entries_) {
    if (!same_name(key, name)) continue;
    old = value;
    return;
  }
  add(name, value);
}

void Headers::add(std::string_view name, std::string_view value) {
  entries_.emplace_back(name, value);
}

void Headers::erase(std::string_view name) {
  std::erase_if(entries_, [name](const Entry& entry) { return same_name(entry.first, name); });
}

std::string Origin::authority() const {
  const bool brackets = host.find(':') != std::string::npos;
  std::string text = brackets ? "[" + host + "]" : host;
  if (port != (tls ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

Result<Url> parse_url(std::string_view text) {
  // The text itself stays out of the messages where it may hold a password.
  const auto parsed = boost::urls::parse_uri({text.data(), text.size()});
  if (!parsed) return fail(ErrorCode::parse, "not a URL of the form https://host[:port]/path");
  const boost::urls::url_view& url = *parsed;
  if (url.has_userinfo())
    return fail(ErrorCode::parse, "a URL must not contain a user name or password");

  std::string scheme{url.scheme()};
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), lower);
  if (scheme != "http" && scheme != "https")
    return fail(ErrorCode::parse,
                fmt::format("unknown URL scheme \"{}\": http and https are known", scheme));
  if (url.has_fragment())
    return fail(ErrorCode::parse, fmt::format("the URL \"{}\" must not have a #fragment", text));

  Url result;
  result.origin.tls = scheme == "https";
  result.origin.host = url.host_address();
  if (result.origin.host.empty() ||
      (url.host_type() == boost::urls::host_type::name && !is_host_name(result.origin.host)) ||
      url.host_type() == boost::urls::host_type::ipvfuture)
    return fail(ErrorCode::parse, fmt::format("the URL \"{}\" has no valid host", text));

  result.origin.port = result.origin.tls ? 443 : 80;
  if (url.has_port() && !url.port().empty()) {
    // Not url.port_number(): Boost.URL 1.81 wraps what does not fit (99999 → 34463).
    const std::string digits{url.port()};
    const auto parsed_port =
        std::from_chars(digits.data(), digits.data() + digits.size(), result.origin.port);
    if (parsed_port.ec != std::errc{} || result.origin.port == 0)
      return fail(ErrorCode::parse,
                  fmt::format("the port of the URL \"{}\" is not in 1..65535", text));
  }

  result.path = std::string{url.encoded_path()};
  if (result.path.empty()) result.path = "/";
  // Boost.URL 1.81 takes "host:8x/" for port 8 and path "x/".
  if (result.path.front() != '/')
    return fail(ErrorCode::parse, fmt::format("the URL \"{}\" has no valid port", text));
  if (url.has_query()) result.path += "?" + std::string{url.encoded_query()};
  return result;
}

}  // namespace kwatt::net
