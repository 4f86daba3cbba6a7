#include "net/client.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "base/log.hpp"
#include "net/body_stream.hpp"
#include "net/connection.hpp"
#include "net/message_writer.hpp"

namespace kwatt::net {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t most_idle = 8;
// Shorter than servers keep theirs (90 s and more), so that we are seldom the surprised one.
constexpr auto idle_time = std::chrono::seconds{60};
// How often a connection that is used again asks whether the TLS files have changed.
constexpr auto tls_check_interval = std::chrono::seconds{10};

MessageReader::Kind response_kind(const Request& request) {
  return request.method == "HEAD" ? MessageReader::Kind::response_to_head
                                  : MessageReader::Kind::response;
}

}  // namespace

struct Client::Impl {
  using Self = std::shared_ptr<Impl>;

  boost::asio::any_io_executor executor;
  Origin origin;
  TlsSource tls;
  AddressFilter filter;
  std::string name;  // "host:port"

  TlsConfig config;
  SslContext context;
  std::optional<TlsConfig> refused;  // the last value that could not be used
  std::optional<SteadyPoint> asked;  // when `tls` was asked last
  std::deque<std::unique_ptr<Connection>> idle;

  // Asks for the TLS files; a changed value makes the kept connections worthless. A value that
  // OpenSSL refuses (a half-written file) is logged once, and the last good one stays.
  Result<void> refresh_tls() {
    if (!origin.tls) return {};
    TlsConfig current = tls ? tls() : TlsConfig{};
    asked = steady_clock::now();
    if (context && (current == config || current == refused)) return {};
    auto made = client_context(current);
    if (!made) {
      const Error error = made.error().with_context(name + ": TLS settings");
      if (!context) return error;
      log::warn("new TLS settings refused, the old ones stay", {{"error", error}});
      refused = std::move(current);
      return {};
    }
    idle.clear();
    config = std::move(current);
    context = std::move(*made);
    refused.reset();
    return {};
  }

  // A kept connection that looks alive, the one used last first; null: none.
  std::unique_ptr<Connection> reuse() {
    const auto now = steady_clock::now();
    while (!idle.empty() && now - idle.front()->idle_since > idle_time) idle.pop_front();
    // Kept connections mean that there is a context, so this cannot fail.
    if (!idle.empty() && asked && now - *asked > tls_check_interval) (void)refresh_tls();
    while (!idle.empty()) {
      auto connection = std::move(idle.back());
      idle.pop_back();
      if (connection->transport->quiet()) return connection;
    }
    return nullptr;
  }

  void keep(std::unique_ptr<Connection> connection) {
    if (connection->context != context) return;  // made with older TLS files
    connection->buffer = {};
    connection->idle_since = steady_clock::now();
    idle.push_back(std::move(connection));
    if (idle.size() > most_idle) idle.pop_front();
  }

  static Task<Result<std::unique_ptr<Connection>>> dial(Self self, Duration connect,
                                                        SteadyPoint total);
  static Task<Result<Response>> send(Self self, Request request, Limits limits);
  static Task<Result<std::unique_ptr<BodyStream>>> open(Self self, Request request, Limits limits);
};

Task<Result<std::unique_ptr<Connection>>> Client::Impl::dial(Self self, Duration connect,
                                                             SteadyPoint total) {
  const SteadyPoint deadline = std::min(total, steady_clock::now() + connect);
  if (auto refreshed = self->refresh_tls(); !refreshed) co_return refreshed.error();
  const SslContext context = self->context;
  const std::string server_name =
      self->config.server_name.empty() ? self->origin.host : self->config.server_name;

  auto socket = co_await connect_tcp(self->executor, self->origin, self->filter, deadline);
  if (!socket) co_return socket.error().with_context("cannot connect to " + self->name);

  ssl_st* ssl = nullptr;
  if (context) {
    auto made = new_client_ssl(context, server_name);
    if (!made) co_return made.error().with_context(self->name);
    ssl = *made;
  }
  auto connection = std::make_unique<Connection>();
  connection->transport = make_transport(std::move(*socket), ssl, Role::client);
  connection->context = context;
  connection->name = self->name;
  auto shaken = co_await connection->transport->handshake(deadline);
  if (!shaken)
    co_return shaken.error().with_context(
        fmt::format("cannot connect to {} as {}", self->name, server_name));
  co_return std::move(connection);
}

Task<Result<Response>> Client::Impl::send(Self self, Request request, Limits limits) {
  const SteadyPoint total = steady_clock::now() + limits.total;
  auto head = request_head(request, self->origin);
  if (!head) co_return head.error().with_context(self->name);
  const Outgoing outgoing{std::move(*head), std::move(request.body)};

  auto connection = self->reuse();
  bool reused = connection != nullptr;
  for (;;) {
    if (!connection) {
      auto dialed = co_await dial(self, limits.connect, total);
      if (!dialed) co_return dialed.error();
      connection = std::move(*dialed);
    }
    const std::size_t written_before = connection->transport->written();
    auto begun = co_await begin_exchange(*connection, outgoing, response_kind(request), limits,
                                         limits.body_bytes, total);
    if (!begun) {
      const bool untouched = connection->transport->written() == written_before;
      if (reused && begun.error().code == ErrorCode::unavailable && !connection->answered &&
          (untouched || is_idempotent(request.method))) {
        connection.reset();
        reused = false;
        continue;
      }
      co_return begun.error();
    }

    MessageReader& reader = *begun;
    const std::string context = self->name + ": reading the response body";
    while (!reader.done()) {
      auto read = co_await read_more(*connection, reader, total);
      if (!read) co_return read.error().with_context(context);
    }
    Message& message = reader.message();
    Response response{message.status, std::move(message.headers), std::move(message.body)};
    if (reusable(*connection, reader)) self->keep(std::move(connection));
    if (!response.body.empty() && strip_gzip(response.headers)) {
      auto decoded = gunzip(std::move(response.body), limits.body_bytes);
      if (!decoded) co_return decoded.error().with_context(context);
      response.body = std::move(*decoded);
    }
    co_return std::move(response);
  }
}

Task<Result<std::unique_ptr<BodyStream>>> Client::Impl::open(Self self, Request request,
                                                             Limits limits) {
  auto head = request_head(request, self->origin);
  if (!head) co_return head.error().with_context(self->name);
  const Outgoing outgoing{std::move(*head), std::move(request.body)};
  auto connection = co_await dial(self, limits.connect, SteadyPoint::max());
  if (!connection) co_return connection.error();
  auto begun = co_await begin_exchange(**connection, outgoing, response_kind(request), limits,
                                       std::nullopt, SteadyPoint::max());
  if (!begun) co_return begun.error();
  co_return make_body_stream(std::move(*connection), std::move(*begun));
}

Client::Client(boost::asio::any_io_executor executor, Origin origin, TlsSource tls,
               AddressFilter filter)
    : impl_(std::make_shared<Impl>()) {
  impl_->executor = std::move(executor);
  const bool brackets = origin.host.find(':') != std::string::npos;
  impl_->name =
      fmt::format("{}{}{}:{}", brackets ? "[" : "", origin.host, brackets ? "]" : "", origin.port);
  impl_->origin = std::move(origin);
  impl_->tls = std::move(tls);
  impl_->filter = std::move(filter);
}

Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Task<Result<Response>> Client::send(Request request, Limits limits) {
  return Impl::send(impl_, std::move(request), limits);
}

Task<Result<std::unique_ptr<BodyStream>>> Client::open(Request request, Limits limits) {
  return Impl::open(impl_, std::move(request), limits);
}

const Origin& Client::origin() const {
  return impl_->origin;
}

}  // namespace kwatt::net
