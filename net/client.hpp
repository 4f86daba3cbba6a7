#pragma once
// HTTP/1.1 client over TCP or TLS (≥ 1.2, chain and host name always verified), one origin each.
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "net/http.hpp"

namespace kwatt::net {

template <class T>
using Task = boost::asio::awaitable<T>;

// A response whose body is read piece by piece (watches, large lists). Owns its connection; closing
// or destroying it closes the connection. One reader.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;
  // The next piece (valid until the next call); empty at the clean end of the body.
  // Errors: timeout (nothing arrived for `idle`), unavailable (connection lost before the end).
  virtual Task<Result<std::string_view>> read_some(Duration idle) = 0;
  // The rest of the body, at most `limit` bytes; for error bodies.
  virtual Task<Result<std::string>> read_all(std::size_t limit, Duration idle) = 0;
};

// Keeps up to 8 idle connections for 60 s and uses them again; what is too old is dropped at the
// next request. A kept connection that turns out dead before any byte of the response is replaced
// once by a fresh one if the method is idempotent or nothing was sent. Single-threaded: use from
// one executor/strand. Cancel through Asio per-operation cancellation (terminal): the connection is
// closed, and the result is `cancelled` or, between two steps, Asio's operation_aborted exception.
class Client {
 public:
  // `tls` is asked before every new connection, and at most every 10 s before one is used again, so
  // that rotated files take effect; the kept connections are dropped when its value changed
  // (a value that OpenSSL refuses is logged, and the last good one stays). Empty function: the
  // system's roots. Not asked for plain HTTP.
  using TlsSource = std::function<TlsConfig()>;
  // `resolved` may refuse an address after name resolution (allow-lists); empty: all allowed.
  using AddressFilter = std::function<bool(const std::string& address)>;

  Client(boost::asio::any_io_executor executor, Origin origin, TlsSource tls,
         AddressFilter filter = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Sends and reads the whole response. Redirects are returned, never followed. A gzip body is
  // decoded (and bounded after decoding, too), but asked for only by the caller's Accept-Encoding.
  // Host, Content-Length, Connection and, unless given, User-Agent are set here.
  // Errors: unavailable, timeout, protocol (not HTTP, body or header over the limit), forbidden
  // (address filter), cancelled; TLS verification failures are `forbidden` with OpenSSL's words.
  Task<Result<Response>> send(Request request, Limits limits = {});

  // Sends and returns as soon as the response header is there. Uses a connection of its own, so a
  // slow stream never blocks send(). gzip is decoded here too. Limits::body_bytes and ::total do
  // not apply: every read has its own idle time.
  Task<Result<std::unique_ptr<BodyStream>>> open(Request request, Limits limits = {});

  const Origin& origin() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with operations in flight
};

}  // namespace kwatt::net
