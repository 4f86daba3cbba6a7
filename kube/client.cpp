#include "kube/client.hpp"

#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "kube/credentials.hpp"
#include "kube/path.hpp"
#include "kube/rate_limiter.hpp"
#include "kube/retry.hpp"
#include "kube/status_error.hpp"
#include "net/run.hpp"

namespace kwatt::kube {
namespace {

class HttpClient final : public Client {
 public:
  HttpClient(boost::asio::any_io_executor executor, const Config& config, ClientOptions options,
             const Clock& clock)
      : prefix_(config.path_prefix),
        options_(std::move(options)),
        clock_(clock),
        tokens_(config.token, config.token_file, clock),
        tls_(config, clock),
        limiter_(options_.queries_per_second, options_.burst),
        http_(std::move(executor), config.server, [this] { return tls_.current(); }) {}

  Task<Result<std::string>> get(const Resource& resource, Name name) override {
    return call({.target = path_of(resource, name.namespace_name, name.name)});
  }
  Task<Result<std::string>> create(const Resource& resource, std::string namespace_name,
                                   std::string body) override {
    return call({.method = "POST",
                 .target = path_of(resource, namespace_name),
                 .content_type = "application/json",
                 .body = std::move(body)});
  }
  Task<Result<std::string>> replace(const Resource& resource, Name name,
                                    std::string body) override {
    return put(path_of(resource, name.namespace_name, name.name), std::move(body));
  }
  Task<Result<std::string>> replace_status(const Resource& resource, Name name,
                                           std::string body) override {
    return put(path_of(resource, name.namespace_name, name.name, "status"), std::move(body));
  }
  Task<Result<std::string>> patch(const Resource& resource, Name name, PatchType type,
                                  std::string field_manager, std::string subresource,
                                  std::string body) override {
    std::string target = path_of(resource, name.namespace_name, name.name, subresource);
    target += "?fieldManager=" + percent_encode(field_manager);
    const char* content_type = "application/json-patch+json";
    if (type == PatchType::merge) content_type = "application/merge-patch+json";
    if (type == PatchType::apply) {
      content_type = "application/apply-patch+yaml";
      target += "&force=true";
    }
    return call({.method = "PATCH",
                 .target = std::move(target),
                 .content_type = content_type,
                 .body = std::move(body)});
  }
  Task<Result<void>> remove(const Resource& resource, Name name,
                            std::string precondition_uid) override {
    Call request{.method = "DELETE", .target = path_of(resource, name.namespace_name, name.name)};
    if (!precondition_uid.empty()) {
      request.content_type = "application/json";
      request.body = api::delete_options(precondition_uid);
    }
    auto answer = co_await call(std::move(request));
    if (!answer) co_return answer.error();
    co_return Result<void>{};
  }
  Task<Result<void>> evict(Name pod, std::string uid) override;
  Task<Result<void>> bind(Name pod, std::string uid, std::string node) override;
  Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string path_and_query) override;

 private:
  struct Call {
    std::string method = "GET";
    std::string target{};
    std::string content_type{};
    std::string body{};
    std::string doing() const { return method + " " + target; }
  };

  Task<Result<std::string>> put(std::string target, std::string body) {
    return call({.method = "PUT",
                 .target = std::move(target),
                 .content_type = "application/json",
                 .body = std::move(body)});
  }
  Task<Result<std::string>> call(Call request);
  // One attempt, with the credentials of this moment; waits for the rate limiter.
  Task<Result<net::Request>> prepare(const Call& request);
  void count(const std::string& method, int status);

  std::string prefix_;
  ClientOptions options_;
  const Clock& clock_;
  TokenSource tokens_;
  TlsSource tls_;
  bool tls_loaded_ = false;
  RateLimiter limiter_;
  net::Client http_;
};

Task<Result<net::Request>> HttpClient::prepare(const Call& request) {
  const Duration wait = limiter_.reserve(clock_.monotonic());
  if (wait > Duration{0}) co_await net::sleep(wait);
  if (!tls_loaded_) {
    if (auto loaded = tls_.load(); !loaded) co_return loaded.error();
    tls_loaded_ = true;
  }
  auto token = tokens_.current();
  if (!token) co_return token.error();
  net::Request made;
  made.method = request.method;
  made.target = prefix_ + request.target;
  made.headers.set("Accept", "application/json");
  made.headers.set("User-Agent", options_.user_agent);
  if (!request.content_type.empty()) made.headers.set("Content-Type", request.content_type);
  if (!token->empty()) made.headers.set("Authorization", "Bearer " + *token);
  made.body = request.body;
  co_return made;
}

void HttpClient::count(const std::string& method, int status) {
  if (options_.metrics == nullptr) return;
  options_.metrics->add(
      "rest_client_requests_total", "Requests to the API server, by their outcome",
      {{"method", method}, {"code", status == 0 ? "error" : fmt::format("{}", status)}});
}

Task<Result<std::string>> HttpClient::call(Call request) {
  net::Limits limits;
  limits.header = limits.total = options_.request_timeout;
  std::optional<Error> previous;
  for (int attempt = 0;; ++attempt) {
    auto prepared = co_await prepare(request);
    if (!prepared) co_return prepared.error().with_context(request.doing());
    const MonotonicPoint started = clock_.monotonic();
    auto response = co_await http_.send(std::move(*prepared), limits);
    count(request.method, response ? response->status : 0);
    if (!response) {
      const Error error = response.error().with_context(request.doing());
      co_return previous
          ? error.with_context(fmt::format("after {} retries ({})", attempt, previous->message))
          : error;
    }
    if (response->status >= 200 && response->status < 300) co_return std::move(response->body);
    if (response->status == 401) tokens_.rejected(started);
    const std::string_view retry_after = response->headers.get("Retry-After");
    Error error = to_error(status_of_response(response->status, retry_after, response->body),
                           request.doing());
    const auto pause = retry_pause(attempt, request.method, response->status, retry_after);
    if (!pause) {
      if (previous) error.message += fmt::format(", after {} retries", attempt);
      co_return error;
    }
    previous = std::move(error);
    co_await net::sleep(*pause);
  }
}

Task<Result<void>> HttpClient::evict(Name pod, std::string uid) {
  Call request{.method = "POST",
               .target = path_of(resources::pods(), pod.namespace_name, pod.name, "eviction"),
               .content_type = "application/json",
               .body = api::eviction(pod.namespace_name, pod.name, uid)};
  auto answer = co_await call(std::move(request));
  if (answer || answer.error().code == ErrorCode::not_found) co_return Result<void>{};
  if (answer.error().code != ErrorCode::conflict) co_return answer.error();
  // A conflict may mean another uid, that is: our pod is gone, a namesake came. Look.
  auto present = co_await get(resources::pods(), pod);
  if (!present && present.error().code == ErrorCode::not_found) co_return Result<void>{};
  api::Pod now;
  if (present && api::decode(*present, now) && now.uid != uid) co_return Result<void>{};
  co_return answer.error();
}

Task<Result<void>> HttpClient::bind(Name pod, std::string uid, std::string node) {
  Call request{.method = "POST",
               .target = path_of(resources::pods(), pod.namespace_name, pod.name, "binding"),
               .content_type = "application/json",
               .body = api::binding(pod.namespace_name, pod.name, uid, node)};
  auto answer = co_await call(std::move(request));
  if (!answer) co_return answer.error();
  co_return Result<void>{};
}

Task<Result<std::unique_ptr<net::BodyStream>>> HttpClient::open(std::string path_and_query) {
  Call request{.target = std::move(path_and_query)};
  auto prepared = co_await prepare(request);
  if (!prepared) co_return prepared.error().with_context(request.doing());
  const MonotonicPoint started = clock_.monotonic();
  net::Limits limits;
  limits.header = options_.request_timeout;
  auto stream = co_await http_.open(std::move(*prepared), limits);
  count(request.method, stream ? (*stream)->status() : 0);
  if (!stream) co_return stream.error().with_context(request.doing());
  if ((*stream)->status() == 401) tokens_.rejected(started);
  co_return std::move(*stream);
}

}  // namespace

std::unique_ptr<Client> make_client(boost::asio::any_io_executor executor, const Config& config,
                                    ClientOptions options, const Clock& clock) {
  return std::make_unique<HttpClient>(std::move(executor), config, std::move(options), clock);
}

}  // namespace kwatt::kube
