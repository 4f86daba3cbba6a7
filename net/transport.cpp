#include "net/transport.hpp"

#include <sys/socket.h>
#include <type_traits>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/watchdog.hpp"

namespace kwatt::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

using TlsStream = asio::ssl::stream<tcp::socket>;

// What a server still reads, and throws away, of a client that it is done with.
constexpr std::size_t linger_bytes = 4 * 1024 * 1024;

template <class Stream>
class StreamTransport final : public Transport {
  static constexpr bool tls = std::is_same_v<Stream, TlsStream>;

 public:
  template <class... Args>
  explicit StreamTransport(Role role, Args&&... args)
      : stream_(std::forward<Args>(args)...), watchdog_(socket()), role_(role) {}

  Task<Result<void>> handshake(SteadyPoint deadline) override {
    if constexpr (tls) {
      const Watchdog::Guard guard{watchdog_, deadline};
      const auto side =
          role_ == Role::client ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
      auto [ec] = co_await stream_.async_handshake(side, token);
      if (ec) co_return failure(ec);
    }
    co_return Result<void>{};
  }

  Task<Result<std::size_t>> read(char* into, std::size_t size, SteadyPoint deadline) override {
    const Watchdog::Guard guard{watchdog_, deadline};
    auto [ec, count] = co_await stream_.async_read_some(asio::buffer(into, size), token);
    if (ec == asio::error::eof) co_return std::size_t{0};
    if (ec) co_return failure(ec);
    co_return count;
  }

  Task<Result<void>> write(std::string_view bytes, SteadyPoint deadline) override {
    const Watchdog::Guard guard{watchdog_, deadline};
    while (!bytes.empty()) {
      if (watchdog_.expired()) co_return failure(asio::error::operation_aborted);
      auto [ec, count] =
          co_await stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()), token);
      written_ += count;
      if (ec) co_return failure(ec);
      bytes.remove_prefix(count);
    }
    co_return Result<void>{};
  }

  Task<void> linger(SteadyPoint deadline) override {
    // With TLS the peer knows from Content-Length that it has everything; sending close_notify
    // first would turn every byte it is still sending into an error.
    if constexpr (!tls) {
      error_code ignored;
      socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
    std::string bin(16 * 1024, '\0');
    for (std::size_t total = 0; total < linger_bytes;) {
      const auto count = co_await read(bin.data(), bin.size(), deadline);
      if (!count || *count == 0) break;
      total += *count;
    }
    close();
  }

  bool quiet() override {
    if (!socket().is_open()) return false;
    char byte = 0;
    const auto got = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  void close() override {
    error_code ignored;
    socket().close(ignored);
  }

  std::string peer() const override {
    error_code ec;
    const auto endpoint = stream_.lowest_layer().remote_endpoint(ec);
    return ec ? std::string{} : endpoint.address().to_string();
  }

  std::size_t written() const override { return written_; }

 private:
  tcp::socket& socket() {
    if constexpr (tls)
      return stream_.next_layer();
    else
      return stream_;
  }

  Error failure(const error_code& ec) {
    // Only after a timeout is the stream in a known state: a server may still say 408.
    if (watchdog_.expired()) return fail(ErrorCode::timeout, "took too long");
    close();
    if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor)
      return fail(ErrorCode::cancelled, "the connection was closed by us");
    if constexpr (tls) {
      if (ec.category() == asio::error::get_ssl_category())
        return tls_error(stream_.native_handle(), static_cast<std::uint32_t>(ec.value()));
      if (ec == asio::ssl::error::stream_truncated || ec == asio::error::eof)
        return fail(ErrorCode::unavailable, "the peer closed the connection without notice");
    }
    return fail(ErrorCode::unavailable, ec.message());
  }

  Stream stream_;
  Watchdog watchdog_;
  Role role_;
  std::size_t written_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_transport(tcp::socket socket, ssl_st* ssl, Role role) {
  error_code ignored;  // a peer that is gone already shows at the first read
  socket.set_option(tcp::no_delay{true}, ignored);
  if (ssl == nullptr)
    return std::make_unique<StreamTransport<tcp::socket>>(role, std::move(socket));
  return std::make_unique<StreamTransport<TlsStream>>(role, std::move(socket), ssl);
}

Task<Result<bool>> fill(Transport& transport, std::string& buffer, std::size_t at_most,
                        SteadyPoint deadline) {
  const std::size_t before = buffer.size();
  buffer.resize(before + at_most);
  const auto count = co_await transport.read(buffer.data() + before, at_most, deadline);
  buffer.resize(before + (count ? *count : 0));
  if (!count) co_return count.error();
  co_return *count > 0;
}

}  // namespace kwatt::net
