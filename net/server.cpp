#include "net/server.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "net/session.hpp"

namespace kwatt::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

// After accept() failed, usually for want of file descriptors.
constexpr Duration accept_pause{100};
// How long stop() waits for closed connections to notice.
constexpr Duration close_time{1'000};

}  // namespace

struct Server::Impl {
  using Self = std::shared_ptr<Impl>;

  // A session, and the signal that cancels its running handler.
  struct Entry {
    Entry(std::shared_ptr<const SessionHost> shared, std::unique_ptr<Transport> transport)
        : session(std::move(shared), std::move(transport)) {}
    Session session;
    asio::cancellation_signal cancel;
  };

  Impl(asio::any_io_executor ex, std::shared_ptr<SessionHost> shared,
       std::function<TlsConfig()> source)
      : executor(std::move(ex)),
        host(std::move(shared)),
        tls(std::move(source)),
        acceptor(executor),
        drained(executor) {}

  asio::any_io_executor executor;
  std::shared_ptr<SessionHost> host;
  std::function<TlsConfig()> tls;
  tcp::acceptor acceptor;
  asio::steady_timer drained;  // cancelled when the last session ends
  std::map<Entry*, std::shared_ptr<Entry>> entries;
  TlsConfig config;
  SslContext context;
  std::optional<TlsConfig> refused;  // the last value that could not be used
  bool full = false;                 // logged once per episode

  // The context for the next connection. A new value that OpenSSL refuses (a half-written file) is
  // logged once, and the last good one stays. Errors: no good one yet.
  Result<void> refresh_tls();
  Result<void> listen();
  static Task<void> accept_all(Self self);
  static Task<void> serve(Self self, std::shared_ptr<Entry> entry);
  void admit(Self self, tcp::socket socket);
  bool make_room();
  void close_acceptor();
  void close_idle();
  void close_all();
};

Result<void> Server::Impl::refresh_tls() {
  if (!host->options.tls) return {};
  TlsConfig current = tls ? tls() : TlsConfig{};
  if (context && (current == config || current == refused)) return {};
  auto made = server_context(current);
  if (!made) {
    const Error error = made.error().with_context("TLS settings of the server");
    if (!context) return error;
    log::error("new TLS settings refused, the old ones stay", {{"error", error}});
    refused = std::move(current);
    return {};
  }
  config = std::move(current);
  context = std::move(*made);
  refused.reset();
  return {};
}

Result<void> Server::Impl::listen() {
  const ServerOptions& options = host->options;
  const std::string where = fmt::format("cannot listen on {}:{}", options.address, options.port);
  error_code ec;
  const auto address = asio::ip::make_address(options.address, ec);
  if (ec) return fail(ErrorCode::invalid_argument, where + ": not an IP address");
  const tcp::endpoint endpoint{address, options.port};
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address{true}, ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) {
    close_acceptor();
    return fail(ErrorCode::io, where + ": " + ec.message());
  }
  return {};
}

Task<void> Server::Impl::accept_all(Self self) {
  while (!self->host->stopping) {
    auto [ec, socket] = co_await self->acceptor.async_accept(token);
    if (self->host->stopping || ec == asio::error::operation_aborted) co_return;
    if (!ec) {
      self->admit(self, std::move(socket));
      continue;
    }
    log::warn("cannot accept a connection", {{"error", ec.message()}});
    asio::steady_timer pause{self->executor, accept_pause};
    co_await pause.async_wait(token);
  }
}

void Server::Impl::admit(Self self, tcp::socket socket) {
  if (entries.size() >= host->options.max_connections && !make_room()) {
    if (!full) log::warn("connection limit reached", {{"limit", host->options.max_connections}});
    full = true;
    return;  // closes the socket
  }
  full = false;
  ssl_st* ssl = nullptr;
  if (host->options.tls) {
    (void)refresh_tls();  // cannot fail: start() has made the first context
    ssl = new_server_ssl(context);
  }
  auto transport = make_transport(std::move(socket), ssl, Role::server);
  const auto entry = std::make_shared<Entry>(host, std::move(transport));
  entries.emplace(entry.get(), entry);
  // The completion handler keeps the signal alive until Asio is done with its slot.
  const auto ended = [entry](const std::exception_ptr&) {};
  asio::co_spawn(executor, serve(std::move(self), entry),
                 asio::bind_cancellation_slot(entry->cancel.slot(), ended));
}

Task<void> Server::Impl::serve(Self self, std::shared_ptr<Entry> entry) {
  try {
    co_await entry->session.run();
  } catch (const std::exception& error) {
    if (!self->host->stopping)
      log::error("connection failed", {{"peer", entry->session.peer()}, {"error", error.what()}});
  }
  entry->session.close();
  self->entries.erase(entry.get());
  if (self->entries.empty()) self->drained.cancel();
}

// Closes the connection that has been idle longest, if there is one.
bool Server::Impl::make_room() {
  Session* oldest = nullptr;
  for (const auto& [key, entry] : entries) {
    Session& session = entry->session;
    if (session.idle() && (oldest == nullptr || session.idle_since() < oldest->idle_since()))
      oldest = &session;
  }
  if (oldest == nullptr) return false;
  oldest->close();
  return true;
}

void Server::Impl::close_acceptor() {
  error_code ignored;
  acceptor.close(ignored);
}

void Server::Impl::close_idle() {
  for (const auto& [key, entry] : entries)
    if (entry->session.idle()) entry->session.close();
}

void Server::Impl::close_all() {
  const auto copy = entries;  // cancellation may end a session at once
  for (const auto& [key, entry] : copy) {
    entry->session.close();
    entry->cancel.emit(asio::cancellation_type::terminal);
  }
}

Server::Server(asio::any_io_executor executor, ServerOptions options, Handler handler,
               std::function<TlsConfig()> tls) {
  auto host = std::make_shared<SessionHost>();
  host->options = std::move(options);
  host->handler = std::move(handler);
  impl_ = std::make_shared<Impl>(std::move(executor), std::move(host), std::move(tls));
}

Server::~Server() {
  impl_->host->stopping = true;
  impl_->close_acceptor();
  impl_->close_all();
}

Result<void> Server::start() {
  if (auto ready = impl_->refresh_tls(); !ready) return ready;
  if (auto listening = impl_->listen(); !listening) return listening;
  asio::co_spawn(impl_->executor, Impl::accept_all(impl_), asio::detached);
  return {};
}

std::uint16_t Server::port() const {
  error_code ec;
  const auto endpoint = impl_->acceptor.local_endpoint(ec);
  return ec ? impl_->host->options.port : endpoint.port();
}

Task<void> Server::stop(Duration grace) {
  const auto impl = impl_;
  impl->host->stopping = true;
  impl->close_acceptor();
  impl->close_idle();
  for (const Duration wait : {grace, close_time}) {
    if (impl->entries.empty()) break;
    impl->drained.expires_after(wait);
    co_await impl->drained.async_wait(token);
    impl->close_all();
  }
}

}  // namespace kwatt::net
