#include "cli/controller_call.hpp"

#include <fstream>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/status.hpp"
#include "kube/path.hpp"
#include "kube/status_error.hpp"

namespace kwatt::cli {
namespace {

namespace asio = boost::asio;

constexpr const char* kService = "kwatt-controller";
constexpr std::int64_t kTokenSeconds = 600;  // the shortest the API server gives
constexpr Duration kPatience = std::chrono::minutes{1};

// The token of a TokenRequest that was granted.
Result<std::string> token_in(const std::string& json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.IsObject() && document.HasMember("status") && document["status"].IsObject()) {
    const auto token = document["status"].FindMember("token");
    if (token != document["status"].MemberEnd() && token->value.IsString()) {
      return std::string(token->value.GetString(), token->value.GetStringLength());
    }
  }
  return fail(ErrorCode::parse, "the API server's TokenRequest has no token");
}

// A short-lived token of the ServiceAccount that has the right. Our own token would not do: it is
// the API server's, and must not be shown to anybody else.
kube::Task<Result<std::string>> token_of(Session& session, std::string namespace_name,
                                         ControllerRight right) {
  const kube::Resource resource{"", "v1", fmt::format("serviceaccounts/{}/token", right.account),
                                true};
  std::string body =
      fmt::format(R"({{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",)"
                  R"("spec":{{"audiences":["kwatt"],"expirationSeconds":{}}}}})",
                  kTokenSeconds);
  auto answer = co_await session.client.create(resource, namespace_name, std::move(body));
  if (answer) co_return token_in(*answer);
  Error error = answer.error();
  if (error.code == ErrorCode::not_found) {
    co_return error.with_context(
        fmt::format("there is no ServiceAccount {} in namespace {}: apply {} there, or say "
                    "--namespace",
                    right.account, namespace_name, right.manifest));
  }
  if (error.code == ErrorCode::forbidden) {
    co_return error.with_context(
        fmt::format("you may not {}: the Role {} in namespace {} gives the right to it", right.deed,
                    right.role, namespace_name));
  }
  co_return error;
}

Result<net::TlsConfig> tls_of(const std::string& ca_file) {
  net::TlsConfig tls;
  if (ca_file.empty()) return tls;
  std::ifstream file(ca_file, std::ios::binary);
  tls.ca_pem.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || tls.ca_pem.empty()) return fail(ErrorCode::io, "cannot read --ca " + ca_file);
  return tls;
}

kube::Task<Result<net::Response>> ask_directly(ControllerPlace place, net::Request request) {
  auto url = net::parse_url(place.controller);
  if (!url) co_return url.error().with_context("--controller");
  if (!url->origin.tls) {
    co_return fail(ErrorCode::invalid_argument, "--controller must be https: a token is sent");
  }
  auto tls = tls_of(place.ca_file);
  if (!tls) co_return tls.error();
  // Apart: GCC 12 copies the strings of a lambda bit by bit where its expression holds a co_await.
  const auto executor = co_await asio::this_coro::executor;
  net::Client client(executor, url->origin, [config = *tls] { return config; });
  net::Limits limits;
  limits.body_bytes = std::size_t{32} << 20;
  co_return co_await client.send(std::move(request), limits);
}

}  // namespace

void add_controller_place(CLI::App& verb, ControllerPlace& place) {
  verb.add_option("-n,--namespace", place.namespace_name, "Namespace of the controller")
      ->capture_default_str();
  CLI::Option* controller =
      verb.add_option("--controller", place.controller,
                      "https URL of the controller's ingest address, to ask it without the API "
                      "server's proxy")
          ->type_name("URL");
  verb.add_option("--ca", place.ca_file, "CA certificates of --controller (default: the system's)")
      ->type_name("FILE")
      ->needs(controller);
}

kube::Task<Result<net::Response>> call_controller(Session& session, ControllerPlace place,
                                                  ControllerRight right, net::Request request) {
  auto token = co_await token_of(session, place.namespace_name, right);
  if (!token) co_return token.error();
  const std::string bearer = "Bearer " + *token;
  if (!place.controller.empty()) {
    request.headers.set("Authorization", bearer);
    co_return co_await ask_directly(std::move(place), std::move(request));
  }
  request.headers.set("Kwatt-Authorization", bearer);
  request.target = proxy_path(place.namespace_name, request.target);
  if (request.method == "GET") co_return co_await session.fetch(request.target, request.headers);
  co_return co_await session.send(std::move(request), kPatience);
}

std::string proxy_path(const std::string& namespace_name, const std::string& target) {
  return fmt::format("/api/v1/namespaces/{}/services/https:{}:ingest/proxy{}",
                     kube::percent_encode(namespace_name), kService, target);
}

Error controller_refusal(const net::Response& response, const ControllerPlace& place,
                         const ControllerRight& right, const std::string& without) {
  const api::Status status =
      kube::status_of_response(response.status, response.headers.get("Retry-After"), response.body);
  // The controller answers in plain text, the API server with a Status that has a reason.
  if (status.reason.empty()) {
    Error error = kube::to_error(status, "the controller refused");
    if (response.status == 404) {
      error.message = without;
      error.server_text.clear();
    }
    return error;
  }
  Error error = kube::to_error(status, "the way to the controller through the API server");
  if (error.code == ErrorCode::not_found) {
    error.message = fmt::format(
        "there is no Service {} with a port \"ingest\" in namespace {}; --controller "
        "asks without it",
        kService, place.namespace_name);
  } else if (error.code == ErrorCode::forbidden) {
    error.message = fmt::format(
        "you may not use the proxy to Service {}: the Role {} in namespace {} gives the right to "
        "it",
        kService, right.role, place.namespace_name);
  }
  return error;
}

}  // namespace kwatt::cli
