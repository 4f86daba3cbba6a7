#include "hardware/redfish_service.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/log.hpp"
#include "hardware/redfish_messages.hpp"

namespace kwatt::hardware::redfish {
namespace {

using std::chrono::steady_clock;

constexpr Duration kLongestPause = std::chrono::minutes{10};

std::string basic_authorization(const Credentials& credentials) {
  const std::string plain = credentials.user + ":" + credentials.password;
  std::string encoded(4 * ((plain.size() + 2) / 3) + 1, '\0');  // EVP writes a final NUL
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                   reinterpret_cast<const unsigned char*>(plain.data()),
                                   static_cast<int>(plain.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return "Basic " + encoded;
}

net::Limits limits_of(Duration timeout) {
  return {.connect = std::min<Duration>(timeout, std::chrono::seconds{10}),
          .header = timeout,
          .total = timeout,
          .header_bytes = 16 * 1024,
          .body_bytes = 1024 * 1024};
}

net::TlsConfig trusting(const std::string& ca_pem) {
  net::TlsConfig tls;
  tls.ca_pem = ca_pem;
  return tls;
}

// Asks the allow-list, and remembers in `refused` that it said no, so that the error can say what
// to do about it.
net::Client::AddressFilter watched(net::Client::AddressFilter allowed,
                                   std::shared_ptr<bool> refused) {
  if (!allowed) return {};
  return [allowed = std::move(allowed), refused = std::move(refused)](const std::string& address) {
    const bool yes = allowed(address);
    *refused = !yes;
    return yes;
  };
}

}  // namespace

Service::Service(boost::asio::any_io_executor executor, const DriverConfig& config,
                 net::Origin origin)
    : credentials_(config.credentials),
      limits_(limits_of(config.timeout)),
      client_(
          std::move(executor), std::move(origin), [ca = config.ca_pem] { return trusting(ca); },
          watched(config.address_allowed, address_refused_)) {
  if (!credentials_) login_ = Login::none;
}

Task<Result<net::Response>> Service::send(std::string method, std::string target, std::string body,
                                          net::Headers headers) {
  const auto now = steady_clock::now();
  if (not_before_ && now < *not_before_) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*not_before_ - now);
    Error error = fail(
        ErrorCode::unavailable,
        fmt::format("the service asked to be left alone (Retry-After); {} s to go", left.count()));
    error.retry_after = left;
    co_return error;
  }
  if (auto ready = co_await log_in(); !ready) co_return ready.error();
  auto answer = co_await exchange(method, target, body, headers);
  if (answer && answer->status == 401 && login_ == Login::session) {
    // The session ended at the service: a new one, once.
    token_.clear();
    if (auto ready = co_await log_in(); !ready) co_return ready.error();
    answer = co_await exchange(std::move(method), std::move(target), std::move(body),
                               std::move(headers));
  }
  co_return answer;
}

Task<Result<net::Response>> Service::get(std::string path) {
  auto answer = co_await send("GET", path, {}, {});
  if (!answer) co_return answer.error();
  if (auto error = error_of(*answer)) co_return error->with_context(path);
  co_return answer;
}

Task<void> Service::close() {
  if (token_.empty() || session_path_.empty()) co_return;
  auto answer = co_await exchange("DELETE", session_path_, {}, {});
  if (!answer) log::debug("a Redfish session was not deleted", {{"error", answer.error()}});
  token_.clear();
}

Task<Result<net::Response>> Service::exchange(std::string method, std::string target,
                                              std::string body, net::Headers headers) {
  headers.set("Accept", "application/json");
  headers.set("OData-Version", "4.0");
  if (!body.empty()) headers.set("Content-Type", "application/json");
  if (!token_.empty()) {
    headers.set("X-Auth-Token", token_);
  } else if (login_ == Login::basic) {
    headers.set("Authorization", basic_authorization(*credentials_));
  }
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers = std::move(headers);
  request.body = std::move(body);
  *address_refused_ = false;
  auto answer = co_await client_.send(std::move(request), limits_);
  if (answer) {
    heed(*answer);
    co_return answer;
  }
  Error error = answer.error();
  if (*address_refused_) error.message += " (see kwatt-controller --bmc-allow)";
  co_return error;
}

Task<Result<void>> Service::log_in() {
  if (login_ == Login::none || login_ == Login::basic || !token_.empty()) {
    co_return Result<void>{};
  }
  if (login_ == Login::unknown) {
    // The service root needs no authentication, and gets none.
    auto root = co_await exchange("GET", "/redfish/v1/", {}, {});
    if (!root) co_return root.error();
    const auto error = error_of(*root);
    if (error && error->transient()) co_return error->with_context("/redfish/v1/");
    if (!error) {
      if (auto parsed = parse_root(root->body)) sessions_path_ = parsed->sessions;
    }
    login_ = sessions_path_.empty() ? Login::basic : Login::session;
    if (login_ == Login::basic) co_return Result<void>{};
  }
  co_return co_await open_session();
}

Task<Result<void>> Service::open_session() {
  auto answer = co_await exchange("POST", sessions_path_, session_body(*credentials_), {});
  if (!answer) co_return answer.error();
  if (auto error = error_of(*answer)) {
    if (refuses_credentials(*answer)) error->code = ErrorCode::unauthorized;
    const bool no_sessions = error->code == ErrorCode::not_found ||
                             error->code == ErrorCode::unsupported ||
                             (error->code == ErrorCode::protocol && answer->status >= 400);
    if (!no_sessions) co_return error->with_context("opening a session");
    login_ = Login::basic;
    co_return Result<void>{};
  }
  auto session = parse_session(*answer);
  if (!session) {
    login_ = Login::basic;
    co_return Result<void>{};
  }
  token_ = std::move(session->token);
  session_path_ = std::move(session->path);
  co_return Result<void>{};
}

void Service::heed(const net::Response& answer) {
  if (answer.status != 503 && answer.status != 429) return;
  const auto error = error_of(answer);
  if (!error || !error->retry_after) return;
  not_before_ = steady_clock::now() + std::min(*error->retry_after, kLongestPause);
}

}  // namespace kwatt::hardware::redfish
