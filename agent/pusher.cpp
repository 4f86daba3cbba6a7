#include "agent/pusher.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "hardware/excerpt.hpp"
#include "kube/credentials.hpp"

namespace kwatt::agent {
namespace {

// The controller answers from memory; a reply that takes longer is no sign of health.
constexpr net::Limits kLimits{.connect = std::chrono::seconds{5},
                              .header = std::chrono::seconds{10},
                              .total = std::chrono::seconds{15},
                              .header_bytes = 16 * 1024,
                              .body_bytes = 64 * 1024};

net::Client::TlsSource tls_source(std::string ca_file) {
  return [ca_file = std::move(ca_file), last = std::string{}]() mutable {
    net::TlsConfig tls;
    if (ca_file.empty()) return tls;
    // While the file is being replaced, the certificates read last stay in use.
    if (auto pem = kube::read_file(ca_file); pem && !pem->empty()) {
      last = std::move(*pem);
    } else if (!pem) {
      log::warn("controller CA file not readable", {{"error", pem.error()}});
    }
    tls.ca_pem = last;
    return tls;
  };
}

ErrorCode code_of(int status) {
  switch (status) {
    case 401:
      return ErrorCode::unauthorized;
    case 403:
      return ErrorCode::forbidden;
    case 429:
      return ErrorCode::too_many_requests;
    case 400:
    case 413:
    case 422:
      return ErrorCode::invalid_argument;
    default:
      return status >= 500 ? ErrorCode::unavailable : ErrorCode::protocol;
  }
}

}  // namespace

Pusher::Pusher(boost::asio::any_io_executor executor, PusherOptions options)
    : options_(std::move(options)),
      client_(std::move(executor), options_.url.origin, tls_source(options_.ca_file)) {
  while (options_.url.path.ends_with('/')) options_.url.path.pop_back();
}

void Pusher::add(telemetry::AgentSample sample) {
  if (samples_.size() == telemetry::kMaximumSamples) drop(1);
  samples_.push_back(std::move(sample));
}

void Pusher::drop(std::size_t count) {
  count = std::min(count, samples_.size());
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(count));
  dropped_ += count;
}

Result<std::string> Pusher::authorization() const {
  if (options_.token_file.empty()) return std::string{};
  auto token = kube::read_file(options_.token_file);
  if (!token) return token.error().with_context("push token");
  while (!token->empty() && static_cast<unsigned char>(token->back()) <= ' ') token->pop_back();
  if (token->empty()) return fail(ErrorCode::io, "push token: the file is empty");
  return "Bearer " + *token;
}

net::Task<Result<bool>> Pusher::push() {
  auto bearer = authorization();
  if (!bearer) co_return bearer.error();
  telemetry::AgentBatch batch{options_.node, options_.boot_id, {samples_.begin(), samples_.end()}};
  const std::uint64_t end = dropped_ + samples_.size();
  net::Request request;
  request.method = "POST";
  request.target = options_.url.path + "/metrics-ingest";
  request.headers.set("Content-Type", "application/json");
  if (!bearer->empty()) request.headers.set("Authorization", *bearer);
  request.body = telemetry::encode(batch);
  auto answer = co_await client_.send(std::move(request), kLimits);
  if (!answer) co_return answer.error();
  // New samples may have pushed some of these out meanwhile.
  const std::size_t sent = end > dropped_ ? static_cast<std::size_t>(end - dropped_) : 0;
  if (answer->status / 100 == 2) {
    drop(sent);
    co_return answer->headers.get("Kwatt-Leading") != "false";
  }
  const ErrorCode code = code_of(answer->status);
  if (code == ErrorCode::invalid_argument) drop(sent);
  co_return fail(code, fmt::format("the controller answered HTTP {}", answer->status),
                 hardware::excerpt(answer->body));
}

}  // namespace kwatt::agent
