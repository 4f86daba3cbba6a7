#include "servers/sites.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "base/log.hpp"

namespace kwatt::servers {
namespace {

net::Response plain(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  if (status == 503) response.headers.set("Retry-After", "1");
  response.body = std::move(text) + "\n";
  return response;
}

net::Response refusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return plain(400, error.message);
    case ErrorCode::unauthorized:
      return plain(401, error.message);
    case ErrorCode::forbidden:
      return plain(403, error.message);
    default:
      log::warn("sites not recommended", {{"error", error}});
      return plain(503, error.message);
  }
}

std::string bearer(const net::Request& request) {
  constexpr std::string_view kPrefix = "Bearer ";
  for (const char* name : {"Authorization", "Kwatt-Authorization"}) {
    const std::string_view header = request.headers.get(name);
    if (header.substr(0, kPrefix.size()) == kPrefix) {
      return std::string(header.substr(kPrefix.size()));
    }
  }
  return "";
}

// The path of the first member that `type` does not have; "": there is none.
std::string unknown_member(const rapidjson::Value& value, const api::TypeInfo& type,
                           const std::string& path) {
  if (type.kind == api::TypeKind::list && value.IsArray()) {
    for (rapidjson::SizeType i = 0; i < value.Size(); ++i) {
      auto found = unknown_member(value[i], type.element(), fmt::format("{}[{}]", path, i));
      if (!found.empty()) return found;
    }
  }
  if (type.kind != api::TypeKind::object || !value.IsObject()) return "";
  for (const auto& member : value.GetObject()) {
    const std::string name(member.name.GetString(), member.name.GetStringLength());
    std::string below = path.empty() ? name : fmt::format("{}.{}", path, name);
    const auto field = std::find_if(type.fields.begin(), type.fields.end(),
                                    [&](const api::FieldInfo& one) { return one.name == name; });
    if (field == type.fields.end()) return below;
    auto found = unknown_member(member.value, field->type(), below);
    if (!found.empty()) return found;
  }
  return "";
}

struct Handler {
  SitesDependencies dependencies;
  int running = 0;
};

struct Running {
  explicit Running(Handler& handler) : handler_(handler) { ++handler_.running; }
  ~Running() { --handler_.running; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Handler& handler_;
};

// Owns what it uses: the server may forget the handler while a request is under way.
net::Task<net::Response> handle(std::shared_ptr<Handler> self, net::Request request) {
  SitesDependencies& use = self->dependencies;
  if (request.method != "POST") co_return plain(405, "only POST");
  std::string token = bearer(request);
  if (token.empty()) co_return plain(401, "a bearer token of audience kwatt is needed");
  if (request.body.size() > kSitesBody) {
    co_return plain(413, fmt::format("a request has at most {} bytes", kSitesBody));
  }
  if (self->running >= kSitesAtOnce) co_return plain(503, "too many requests at the same time");
  const Running counted(*self);
  auto caller = co_await use.tokens.review(std::move(token));
  if (!caller) co_return refusal(caller.error());
  auto allowed = co_await use.access.review(*caller, kSitesPath, "post");
  if (!allowed) co_return refusal(allowed.error());

  auto spec = parse_site_request(request.body);
  if (!spec) co_return refusal(spec.error());
  auto answer = co_await use.advise(std::move(*spec));
  if (!answer) co_return refusal(answer.error());
  api::SiteRecommendationStatus status;
  placement::sites::show(*answer, status);
  status.evaluated_at = use.clock.now();
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-store");
  response.body = api::encode(status);
  co_return response;
}

}  // namespace

Result<api::SiteRecommendationSpec> parse_site_request(std::string_view body) {
  const auto wrong = [](std::string sentence) {
    return fail(ErrorCode::invalid_argument, std::move(sentence));
  };
  api::SiteRecommendationSpec spec;
  if (auto done = api::decode(body, spec); !done) return wrong(done.error().message);
  // decode() has said that it is well-formed, and not nested too deep.
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  const std::string unknown =
      unknown_member(document, api::type_of<api::SiteRecommendationSpec>(), "");
  if (!unknown.empty()) {
    return wrong(fmt::format("{}: there is no such field in a SiteRecommendation's spec", unknown));
  }
  if (const auto problems = api::validate(spec); !problems.empty()) {
    return wrong(fmt::format("{}", fmt::join(problems, "; ")));
  }
  if (spec.action == api::SiteAction::Create) {
    return wrong(
        "action: Create starts machines and needs an object that records it: make a "
        "SiteRecommendation");
  }
  if (!spec.propagation.write.empty()) {
    return wrong("propagation: policies need an object that owns them: make a SiteRecommendation");
  }
  return spec;
}

net::Handler sites_handler(SitesDependencies dependencies) {
  auto self = std::make_shared<Handler>(Handler{std::move(dependencies), 0});
  return [self](net::Request request) { return handle(self, std::move(request)); };
}

}  // namespace kwatt::servers
