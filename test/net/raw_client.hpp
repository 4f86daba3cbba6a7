#pragma once
// A client that sends exactly the given bytes, to see what the server does with them.
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/run.hpp"
#include "test/support/run_task.hpp"

namespace kwatt::test {

class RawClient {
 public:
  RawClient(boost::asio::io_context& io, std::uint16_t port) : io_(io), socket_(io) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    socket_.non_blocking(true);
  }

  // Sends all, or as much as goes out before the server closes.
  void send(std::string bytes) { run_task(io_, send_all(std::move(bytes))); }
  void finish_sending() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored_); }
  // What arrives until the server closes, `limit` is over or, if given, `until` has come.
  std::string receive(const std::string& until = {}, Duration limit = Duration{2'000}) {
    return run_task(io_, receive_some(until, limit));
  }
  // The server has closed the connection.
  bool closed() const { return closed_; }

 private:
  static constexpr Duration pause{2};

  net::Task<void> send_all(std::string bytes) {
    for (std::size_t sent = 0; sent < bytes.size() && !closed_;) {
      boost::system::error_code ec;
      sent += socket_.write_some(boost::asio::buffer(bytes.data() + sent, bytes.size() - sent), ec);
      if (ec == boost::asio::error::would_block)
        co_await net::sleep(pause);
      else if (ec)
        break;
    }
  }

  net::Task<std::string> receive_some(std::string until, Duration limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::string received;
    while (std::chrono::steady_clock::now() < deadline) {
      if (!until.empty() && received.find(until) != std::string::npos) break;
      char piece[4096];
      boost::system::error_code ec;
      const auto count = socket_.read_some(boost::asio::buffer(piece), ec);
      received.append(piece, count);
      if (ec == boost::asio::error::would_block) {
        co_await net::sleep(pause);
      } else if (ec) {
        closed_ = true;
        break;
      }
    }
    co_return received;
  }

  boost::asio::io_context& io_;
  boost::asio::ip::tcp::socket socket_;
  boost::system::error_code ignored_;
  bool closed_ = false;
};

}  // namespace kwatt::test
