// Carbon intensities of a public service over HTTP.
#include <algorithm>

#include <fmt/format.h>

#include "net/encode.hpp"
#include "telemetry/carbon_source.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Reading;

constexpr std::size_t kLargestAnswer = 8U << 20U;
constexpr std::size_t kExcerpt = 200;

std::string excerpt(std::string_view body) {
  std::string out(body.substr(0, kExcerpt));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte >= 0x7f) c = byte < ' ' ? ' ' : '?';
  }
  return out;
}

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// "2026-11-20T21:00Z": what all of them take.
std::string minute_of(TimePoint time) {
  return format_rfc3339(std::chrono::floor<std::chrono::minutes>(time)).substr(0, 16) + "Z";
}

std::string filled(const CarbonService& service, const std::string& zone, TimePoint now) {
  std::string url = service.url;
  replace_all(url, "{zone}", net::percent_encode(zone));
  replace_all(url, "{from}", net::percent_encode(minute_of(now - service.history)));
  replace_all(url, "{to}", net::percent_encode(minute_of(now)));
  return url;
}

Error refused(const net::Response& response) {
  const int status = response.status;
  const std::string text = excerpt(response.body);
  const auto error = [&](ErrorCode code, std::string_view why) {
    return fail(code, fmt::format("HTTP {}: {}", status, why), text);
  };
  if (status / 100 == 3) {
    return fail(
        ErrorCode::forbidden,
        fmt::format("HTTP {}: redirects are not followed; give the address it leads to", status),
        excerpt(response.headers.get("Location")));
  }
  if (status == 401) return error(ErrorCode::unauthorized, "it wants a (valid) key");
  if (status == 403) return error(ErrorCode::forbidden, "the key may not read this zone");
  if (status == 404) return error(ErrorCode::not_found, "no such zone or address");
  if (status == 429) return error(ErrorCode::too_many_requests, "it is asked too often");
  if (status == 504) return error(ErrorCode::timeout, "a proxy got no answer in time");
  if (status >= 500) return error(ErrorCode::unavailable, "the service is in trouble");
  return error(ErrorCode::protocol, "not an answer with carbon intensities");
}

class CarbonOverHttp final : public CarbonSource {
 public:
  CarbonOverHttp(std::string name, CarbonService service, std::shared_ptr<bool> address_refused,
                 net::Client client)
      : name_(std::move(name)),
        service_(std::move(service)),
        address_refused_(std::move(address_refused)),
        client_(std::move(client)) {}
  const std::string& name() const override { return name_; }

  net::Task<Result<std::vector<Reading>>> fetch(std::string zone, TimePoint now) override {
    auto url = net::parse_url(filled(service_, zone, now));
    if (!url) co_return url.error().with_context(name_);
    net::Request request("GET", url->path);
    request.headers.set("Accept", "application/json");
    if (service_.secret) {
      auto secret = service_.secret();
      if (!secret) co_return secret.error().with_context(name_);
      request.headers.set(service_.header, service_.prefix + *secret);
    }
    net::Limits limits;
    limits.connect = std::min<Duration>(service_.timeout, std::chrono::seconds{5});
    limits.header = limits.total = service_.timeout;
    limits.body_bytes = kLargestAnswer;
    *address_refused_ = false;
    auto response = co_await client_.send(std::move(request), limits);
    if (!response) {
      Error error = response.error().with_context(name_);
      if (*address_refused_) error.message += " (see kwatt-controller --endpoint-allow)";
      co_return error;
    }
    if (response->status != 200) co_return refused(*response).with_context(name_);
    auto readings = read_carbon_json(response->body, service_.mapping);
    if (!readings) {
      Error error = readings.error().with_context(name_);
      error.server_text = excerpt(response->body);
      co_return error;
    }
    if (readings->empty()) {
      co_return fail(ErrorCode::not_found,
                     fmt::format("{}: no value for zone \"{}\" in the answer", name_, zone));
    }
    co_return std::move(*readings);
  }

 private:
  std::string name_;
  CarbonService service_;
  std::shared_ptr<bool> address_refused_;
  net::Client client_;
};

}  // namespace

Result<std::unique_ptr<CarbonSource>> make_carbon_service(boost::asio::any_io_executor executor,
                                                          std::string name, CarbonService service) {
  if (auto good = check(service.mapping); !good) return good.error().with_context(name);
  const auto url = net::parse_url(filled(service, "zone", TimePoint{service.history}));
  if (!url) return url.error().with_context(name);
  const std::string& host = url->origin.host;
  const bool tls = url->origin.tls;
  const auto host_at = service.url.find("://") + 3;
  if (service.url.substr(0, service.url.find('/', host_at)).find('{') != std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                name + ": the host of the URL may not depend on the zone or the time");
  }
  const bool loopback = host == "127.0.0.1" || host == "::1" || host == "localhost";
  if (service.secret && !tls && !loopback) {
    return fail(ErrorCode::invalid_argument,
                name + ": a key is sent over https only; the URL says http");
  }
  if (service.secret && service.header.empty()) {
    return fail(ErrorCode::invalid_argument, name + ": a key needs the name of its header");
  }
  if (!service.allowed.may(host, tls)) {
    return fail(
        ErrorCode::forbidden,
        fmt::format("{}: {} is not allowed: start kwatt-controller with --endpoint-allow {}", name,
                    host, host));
  }
  auto refused_address = std::make_shared<bool>(false);
  auto filter = [allowed = service.allowed.filter(host, tls),
                 refused_address](const std::string& address) {
    const bool yes = allowed(address);
    *refused_address = !yes;
    return yes;
  };
  net::Client client(std::move(executor), url->origin, service.tls, std::move(filter));
  return std::make_unique<CarbonOverHttp>(std::move(name), std::move(service),
                                          std::move(refused_address), std::move(client));
}

}  // namespace kwatt::telemetry
