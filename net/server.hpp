#pragma once
// HTTP/1.1 server, plain or TLS, with limits on everything; a slow or greedy client is dropped.
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "net/client.hpp"
#include "net/http.hpp"

namespace kwatt::net {

struct ServerOptions {
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;  // 0: any free port, see Server::port()
  bool tls = false;
  Limits limits{.connect = std::chrono::seconds{10},
                .header = std::chrono::seconds{10},
                .total = std::chrono::seconds{30},
                .header_bytes = 16 * 1024,
                .body_bytes = 4 * 1024 * 1024};
  // Beyond it the connection that has been idle longest makes room, else the new one is closed.
  std::size_t max_connections = 1024;
  Duration keep_alive = std::chrono::seconds{90};
};

// Handlers run on the server's executor, which must be a single thread or a strand; what they refer
// to must live until stop() has returned. An exception in one becomes 500 and a log line. HEAD
// arrives as GET; its body is not sent. Content-Length and Connection are set by the server
// ("Connection: close" in a response is obeyed). How long a handler may take is its own business.
using Handler = std::function<Task<Response>(Request)>;

class Server {
 public:
  // `tls` is asked at every accepted connection, so a rotated certificate counts at once; a value
  // that OpenSSL refuses is logged and the last good one stays.
  Server(boost::asio::any_io_executor executor, ServerOptions options, Handler handler,
         std::function<TlsConfig()> tls = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and listens. Errors: io (address in use, …), with address and port in the message;
  // invalid_argument for TLS settings or an address that cannot work.
  Result<void> start();
  std::uint16_t port() const;
  // Stops accepting, lets running handlers finish for `grace`, then cancels them and closes.
  Task<void> stop(Duration grace);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kwatt::net
