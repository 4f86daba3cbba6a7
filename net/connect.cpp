// TCP connections by name, with deadline, address filter and prompt cancellation.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "net/resolve.hpp"
#include "net/transport.hpp"
#include "net/watchdog.hpp"

namespace kwatt::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

// A running look-up. getaddrinfo cannot be interrupted, so the coroutine waits on a timer, which
// can, and leaves the look-up to end on its own.
struct Lookup {
  explicit Lookup(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}
  tcp::resolver resolver;
  asio::steady_timer done;
  error_code ec;
  std::vector<tcp::endpoint> endpoints;
  bool finished = false;
};

Task<Result<std::vector<tcp::endpoint>>> resolve(asio::any_io_executor executor, Origin origin,
                                                 SteadyPoint deadline) {
  error_code not_numeric;
  const auto address = asio::ip::make_address(origin.host, not_numeric);
  if (!not_numeric) co_return std::vector<tcp::endpoint>{{address, origin.port}};

  const auto lookup = std::make_shared<Lookup>(executor);
  lookup->done.expires_at(deadline);
  lookup->resolver.async_resolve(
      origin.host, std::to_string(origin.port), tcp::resolver::numeric_service,
      [lookup](error_code ec, const tcp::resolver::results_type& results) {
        lookup->ec = ec;
        for (const auto& entry : results) lookup->endpoints.push_back(entry.endpoint());
        lookup->finished = true;
        lookup->done.cancel();
      });
  auto [waited] = co_await lookup->done.async_wait(token);
  if (!lookup->finished) {
    if (waited) co_return fail(ErrorCode::cancelled, "cancelled while resolving the host name");
    co_return fail(ErrorCode::timeout,
                   fmt::format("resolving the host name {} took too long", origin.host));
  }
  if (lookup->ec || lookup->endpoints.empty())
    co_return fail(ErrorCode::unavailable,
                   fmt::format("cannot resolve the host name {}: {}", origin.host,
                               lookup->ec ? lookup->ec.message() : "it has no address"));
  co_return std::move(lookup->endpoints);
}

Task<Result<tcp::socket>> connect_one(asio::any_io_executor executor, tcp::endpoint endpoint,
                                      SteadyPoint deadline) {
  tcp::socket socket{executor};
  bool expired = false;
  error_code result;
  {
    Watchdog watchdog{socket};
    const Watchdog::Guard guard{watchdog, deadline};
    auto [ec] = co_await socket.async_connect(endpoint, token);
    result = ec;
    expired = watchdog.expired();
  }
  if (expired) co_return fail(ErrorCode::timeout, "no answer in time");
  if (result == asio::error::operation_aborted)
    co_return fail(ErrorCode::cancelled, "cancelled while connecting");
  if (result) co_return fail(ErrorCode::unavailable, result.message());
  co_return std::move(socket);
}

// Those that the filter lets through; at least one.
Task<Result<std::vector<tcp::endpoint>>> resolve_allowed(asio::any_io_executor executor,
                                                         Origin origin,
                                                         Client::AddressFilter filter,
                                                         SteadyPoint deadline) {
  auto endpoints = co_await resolve(executor, origin, deadline);
  if (!endpoints) co_return endpoints.error();

  std::string refused;
  if (filter) {
    std::erase_if(*endpoints, [&](const tcp::endpoint& endpoint) {
      const std::string address = endpoint.address().to_string();
      if (filter(address)) return false;
      refused += (refused.empty() ? "" : ", ") + address;
      return true;
    });
  }
  if (endpoints->empty())
    co_return fail(ErrorCode::forbidden,
                   fmt::format("the address {} of {} is not allowed", refused, origin.host));
  co_return std::move(*endpoints);
}

}  // namespace

Task<Result<std::vector<std::string>>> allowed_addresses(std::string host,
                                                         Client::AddressFilter filter,
                                                         Duration timeout) {
  const auto executor = co_await asio::this_coro::executor;
  Origin origin;
  origin.host = std::move(host);
  const SteadyPoint deadline = std::chrono::steady_clock::now() + timeout;
  auto endpoints = co_await resolve_allowed(executor, origin, std::move(filter), deadline);
  if (!endpoints) co_return endpoints.error();
  std::vector<std::string> addresses;
  for (const tcp::endpoint& endpoint : *endpoints) {
    addresses.push_back(endpoint.address().to_string());
  }
  co_return addresses;
}

Task<Result<tcp::socket>> connect_tcp(asio::any_io_executor executor, Origin origin,
                                      Client::AddressFilter filter, SteadyPoint deadline) {
  auto endpoints = co_await resolve_allowed(executor, origin, std::move(filter), deadline);
  if (!endpoints) co_return endpoints.error();

  Error last;
  for (std::size_t i = 0; i < endpoints->size(); ++i) {
    // One address that swallows packets must not use up the time of the others.
    const auto now = std::chrono::steady_clock::now();
    const auto left = static_cast<std::int64_t>(endpoints->size() - i);
    auto socket = co_await connect_one(executor, (*endpoints)[i], now + (deadline - now) / left);
    if (socket) co_return std::move(*socket);
    last = socket.error();
    if (last.code == ErrorCode::cancelled) break;
    last = last.with_context((*endpoints)[i].address().to_string());
  }
  co_return last;
}

}  // namespace kwatt::net
