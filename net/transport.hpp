#pragma once
// Private to net/. A connected byte stream, TCP or TLS over it, behind one interface, so that the
// expensive templates of asio::ssl are compiled once.
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/client.hpp"
#include "net/tls.hpp"

namespace kwatt::net {

using SteadyPoint = std::chrono::steady_clock::time_point;

// Every operation ends at its deadline with `timeout`; after a read that timed out one may still
// write. All other errors close the connection, as does cancellation (`cancelled`). One reader and
// one writer at a time. Other errors: unavailable (connection lost), and those of tls_error().
class Transport {
 public:
  virtual ~Transport() = default;
  // TLS only; a plain connection is ready at once.
  virtual Task<Result<void>> handshake(SteadyPoint deadline) = 0;
  // At least one byte; 0: the peer closed its side in an orderly way.
  virtual Task<Result<std::size_t>> read(char* into, std::size_t size, SteadyPoint deadline) = 0;
  virtual Task<Result<void>> write(std::string_view bytes, SteadyPoint deadline) = 0;
  // Says goodbye and waits for the peer to close, throwing away what it still sends: closing at
  // once could destroy our last answer on its way.
  virtual Task<void> linger(SteadyPoint deadline) = 0;
  // False when the peer closed, or sent something that nobody asked for.
  virtual bool quiet() = 0;
  virtual void close() = 0;
  virtual std::string peer() const = 0;     // address without port; "" if not connected
  virtual std::size_t written() const = 0;  // bytes since the beginning
};

// `ssl`: from new_client_ssl() or new_server_ssl(), which also decides the role; null: plain TCP.
enum class Role { client, server };
std::unique_ptr<Transport> make_transport(boost::asio::ip::tcp::socket socket, ssl_st* ssl,
                                          Role role);

// Reads more bytes to the end of `buffer`. False: orderly end.
Task<Result<bool>> fill(Transport& transport, std::string& buffer, std::size_t at_most,
                        SteadyPoint deadline);

// Connects TCP: resolves the origin's host and tries its addresses one after the other, each with
// its share of the time left. The addresses that the filter let through are the ones used.
// Errors: unavailable, timeout, forbidden (all addresses refused by the filter).
Task<Result<boost::asio::ip::tcp::socket>> connect_tcp(boost::asio::any_io_executor executor,
                                                       Origin origin, Client::AddressFilter filter,
                                                       SteadyPoint deadline);

}  // namespace kwatt::net
