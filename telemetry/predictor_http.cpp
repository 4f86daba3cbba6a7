#include "telemetry/predictor_http.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "net/encode.hpp"

namespace kwatt::telemetry {
namespace {

constexpr std::size_t kLargestAnswer = 4U << 20U;
constexpr std::size_t kExcerpt = 200;

std::string excerpt(std::string_view body) {
  std::string out(body.substr(0, kExcerpt));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte >= 0x7f) c = byte < ' ' ? ' ' : '?';  // it may end in a status: UTF-8
  }
  return out;
}

// nullopt: a broken escape, or a character that no name has.
std::optional<std::string> decoded_name(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = digit(text[i + 1]), low = digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '/') return std::nullopt;
    out.push_back(c);
  }
  if (out == "." || out == "..") return std::nullopt;
  return out;
}

Error refused(const net::Response& response, const std::string& model) {
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
  if (status == 401) return error(ErrorCode::unauthorized, "it wants credentials; none are sent");
  if (status == 403) return error(ErrorCode::forbidden, "it refuses us");
  if (status == 404) {
    return error(ErrorCode::not_found, fmt::format("there is no model \"{}\"", model));
  }
  if (status == 429) return error(ErrorCode::too_many_requests, "it is asked too often");
  if (status == 504) return error(ErrorCode::timeout, "a proxy got no answer in time");
  if (status >= 500) return error(ErrorCode::unavailable, "the model or its server failed");
  if (status / 100 == 4) return error(ErrorCode::invalid_argument, "it does not take these inputs");
  return error(ErrorCode::protocol, "not an answer to a prediction");
}

}  // namespace

std::string ModelPlace::path(std::string_view root) const {
  std::string out = fmt::format("{}{}{}", prefix, root, net::percent_encode(model));
  if (!version.empty()) out += "/versions/" + net::percent_encode(version);
  return out;
}

Result<ModelPlace> parse_model_url(const std::string& text, std::string_view root,
                                   std::string_view verb) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("predictor \"{}\": {}; wanted is http[s]://HOST:PORT{}MODEL"
                            "[/versions/VERSION]",
                            excerpt(text), why, root));
  };
  auto url = net::parse_url(text);
  if (!url) return wrong(url.error().message);
  std::string_view path = url->path;
  if (path.find_first_of("?#") != std::string_view::npos) return wrong("it has a query");
  if (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with(verb)) path.remove_suffix(verb.size());
  const auto at = path.find(root);
  if (at == std::string_view::npos) return wrong(fmt::format("its path has no {}", root));
  ModelPlace place;
  place.origin = url->origin;
  place.prefix = path.substr(0, at);
  std::string_view rest = path.substr(at + root.size());
  constexpr std::string_view kVersions = "/versions/";
  if (const auto versions = rest.find(kVersions); versions != std::string_view::npos) {
    const auto version = decoded_name(rest.substr(versions + kVersions.size()));
    if (!version || version->empty()) return wrong("it has no version behind /versions/");
    place.version = *version;
    rest = rest.substr(0, versions);
  }
  const auto model = decoded_name(rest);
  if (!model || model->empty()) return wrong("it names no model");
  place.model = *model;
  return place;
}

HttpModel::HttpModel(std::string name, std::string model, net::Limits limits,
                     std::shared_ptr<bool> address_refused, net::Client client)
    : name_(std::move(name)),
      model_(std::move(model)),
      limits_(limits),
      address_refused_(std::move(address_refused)),
      client_(std::move(client)) {}

Result<HttpModel> HttpModel::make(boost::asio::any_io_executor executor, std::string name,
                                  const ModelPlace& place, PredictorSettings settings) {
  const std::string& host = place.origin.host;
  const bool tls = place.origin.tls;
  if (!settings.allowed.may(host, tls)) {
    return fail(ErrorCode::forbidden,
                fmt::format("{}: {} is not allowed: start kwatt-controller with --endpoint-allow {}",
                            name, host, host));
  }
  net::Limits limits;
  limits.connect = std::min<Duration>(settings.timeout, std::chrono::seconds{5});
  limits.header = limits.total = settings.timeout;
  limits.body_bytes = kLargestAnswer;
  auto refused_address = std::make_shared<bool>(false);
  auto filter = [allowed = settings.allowed.filter(host, tls),
                 refused_address](const std::string& address) {
    const bool yes = allowed(address);
    *refused_address = !yes;
    return yes;
  };
  net::Client client(std::move(executor), place.origin, std::move(settings.tls),
                     std::move(filter));
  return HttpModel(std::move(name), place.model, limits, std::move(refused_address),
                   std::move(client));
}

net::Task<Result<std::string>> HttpModel::ask(std::string method, std::string target,
                                              std::string body) {
  net::Request request(std::move(method), std::move(target));
  request.headers.set("Accept", "application/json");
  if (!body.empty()) request.headers.set("Content-Type", "application/json");
  request.body = std::move(body);
  *address_refused_ = false;
  auto response = co_await client_.send(std::move(request), limits_);
  if (!response) {
    Error error = response.error().with_context(name_);
    if (*address_refused_) error.message += " (see kwatt-controller --endpoint-allow)";
    co_return error;
  }
  if (response->status != 200) co_return refused(*response, model_).with_context(name_);
  co_return std::move(response->body);
}

}  // namespace kwatt::telemetry
