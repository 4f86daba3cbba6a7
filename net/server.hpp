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
  std::size_t max_connections = 1024;
  Duration keep_alive = std::chrono::seconds{90};
};

// Handlers run on the server's executor. An exception in one becomes 500 and a log line.
using Handler = std::function<Task<Response>(Request)>;

class Server {
 public:
  // `tls` is asked at every accepted connection, so a rotated certificate counts at once.
  Server(boost::asio::any_io_executor executor, ServerOptions options, Handler handler,
         std::function<TlsConfig()> tls = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and listens. Errors: io (address in use, …), with address and port in the message.
  Result<void> start();
  std::uint16_t port() const;
  // Stops accepting, lets running handlers finish for `grace`, then closes.
  Task<void> stop(Duration grace);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kwatt::net
