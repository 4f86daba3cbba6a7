#include "test/support/scripted_peer.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "net/client.hpp"

namespace kwatt::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using net::Task;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

// The Content-Length of a request header; chunked requests are not understood.
std::size_t body_length(std::string_view head) {
  std::string lower{head};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view name = "\r\ncontent-length: ";
  const auto at = lower.find(name);
  std::size_t length = 0;
  if (at != std::string::npos)
    std::from_chars(lower.data() + at + name.size(), lower.data() + lower.size(), length);
  return length;
}

// Removes one complete request from the front of `buffer`.
std::optional<std::string> take_request(std::string& buffer) {
  const auto end = buffer.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t size = end + 4 + body_length(std::string_view{buffer}.substr(0, end + 2));
  if (buffer.size() < size) return std::nullopt;
  std::string request = buffer.substr(0, size);
  buffer.erase(0, size);
  return request;
}

}  // namespace

Script& Script::send(std::string bytes) & {
  steps_.push_back({Step::Kind::send, std::move(bytes)});
  return *this;
}
Script&& Script::send(std::string bytes) && {
  send(std::move(bytes));
  return std::move(*this);
}
Script& Script::wait(Duration duration) & {
  steps_.push_back({Step::Kind::wait, {}, duration});
  return *this;
}
Script&& Script::wait(Duration duration) && {
  wait(duration);
  return std::move(*this);
}
Script&& Script::close() && {
  steps_.push_back({Step::Kind::close, {}});
  return std::move(*this);
}
Script&& Script::reset() && {
  steps_.push_back({Step::Kind::reset, {}});
  return std::move(*this);
}
Script&& Script::stall() && {
  steps_.push_back({Step::Kind::stall, {}});
  return std::move(*this);
}

struct ScriptedPeer::Impl {
  using Self = std::shared_ptr<Impl>;

  explicit Impl(const asio::any_io_executor& executor)
      : acceptor(executor, tcp::endpoint{asio::ip::address_v4::loopback(), 0}) {}

  tcp::acceptor acceptor;
  std::deque<Script> scripts;
  std::optional<Script> fallback;
  std::vector<std::string> requests;
  std::set<tcp::socket*> open;
  int accepted = 0;
  bool hang_up = false;

  Script next_script() {
    if (!scripts.empty()) {
      Script script = std::move(scripts.front());
      scripts.pop_front();
      return script;
    }
    return fallback ? *fallback : Script{response(599, "no script is left for this request")};
  }

  static Task<void> accept_all(Self self);
  static Task<void> serve(Self self, std::shared_ptr<tcp::socket> socket);
  static Task<bool> play(std::shared_ptr<tcp::socket> socket, Script script);
  static Task<void> serve_requests(Self self, std::shared_ptr<tcp::socket> socket);
};

Task<void> ScriptedPeer::Impl::accept_all(Self self) {
  for (;;) {
    auto [ec, accepted] = co_await self->acceptor.async_accept(token);
    if (ec) co_return;
    ++self->accepted;
    if (self->hang_up) continue;  // closes the socket
    const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
    socket->set_option(tcp::no_delay{true});
    self->open.insert(socket.get());
    asio::co_spawn(self->acceptor.get_executor(), serve(self, socket), asio::detached);
  }
}

Task<void> ScriptedPeer::Impl::serve(Self self, std::shared_ptr<tcp::socket> socket) {
  co_await serve_requests(self, socket);
  self->open.erase(socket.get());
}

Task<void> ScriptedPeer::Impl::serve_requests(Self self, std::shared_ptr<tcp::socket> socket) {
  std::string buffer;
  std::string piece(64 * 1024, '\0');
  for (;;) {
    auto request = take_request(buffer);
    if (request) {
      self->requests.push_back(std::move(*request));
      const bool again = co_await play(socket, self->next_script());
      if (!again) co_return;
      continue;
    }
    auto [ec, count] = co_await socket->async_read_some(asio::buffer(piece), token);
    if (ec) co_return;
    buffer.append(piece, 0, count);
  }
}

// False: the connection is over.
Task<bool> ScriptedPeer::Impl::play(std::shared_ptr<tcp::socket> socket, Script script) {
  for (const Script::Step& step : script.steps()) {
    switch (step.kind) {
      case Script::Step::Kind::send: {
        auto [ec, count] = co_await asio::async_write(*socket, asio::buffer(step.bytes), token);
        if (ec) co_return false;
        break;
      }
      case Script::Step::Kind::wait: {
        asio::steady_timer timer{socket->get_executor(), step.duration};
        co_await timer.async_wait(token);
        break;
      }
      case Script::Step::Kind::stall: {
        char ignored[256];
        for (;;) {
          auto [ec, count] = co_await socket->async_read_some(asio::buffer(ignored), token);
          if (ec) co_return false;
        }
      }
      case Script::Step::Kind::reset:
      case Script::Step::Kind::close: {
        error_code ignored;
        if (step.kind == Script::Step::Kind::reset)
          socket->set_option(asio::socket_base::linger{true, 0}, ignored);
        socket->close(ignored);
        co_return false;
      }
    }
  }
  co_return true;
}

ScriptedPeer::ScriptedPeer(asio::any_io_executor executor)
    : impl_(std::make_shared<Impl>(executor)) {
  asio::co_spawn(executor, Impl::accept_all(impl_), asio::detached);
}

ScriptedPeer::~ScriptedPeer() {
  error_code ignored;
  impl_->acceptor.close(ignored);
  for (tcp::socket* socket : impl_->open) socket->close(ignored);
}

void ScriptedPeer::reply(Script script) {
  impl_->scripts.push_back(std::move(script));
}
void ScriptedPeer::always(Script script) {
  impl_->fallback = std::move(script);
}
void ScriptedPeer::hang_up_on_connect(bool hang_up) {
  impl_->hang_up = hang_up;
}
std::uint16_t ScriptedPeer::port() const {
  return impl_->acceptor.local_endpoint().port();
}
net::Origin ScriptedPeer::origin() const {
  return {.tls = false, .host = "127.0.0.1", .port = port()};
}
int ScriptedPeer::connections() const {
  return impl_->accepted;
}
int ScriptedPeer::open_connections() const {
  return static_cast<int>(impl_->open.size());
}
const std::vector<std::string>& ScriptedPeer::requests() const {
  return impl_->requests;
}
std::vector<std::string> ScriptedPeer::request_lines() const {
  std::vector<std::string> lines;
  for (const std::string& request : impl_->requests)
    lines.push_back(request.substr(0, request.find("\r\n")));
  return lines;
}

namespace {

std::string head(int status, const net::Headers& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text;
}

}  // namespace

std::string response(int status, std::string_view body, const net::Headers& headers) {
  return head(status, headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string{body};
}

std::string json_response(int status, std::string_view body) {
  return response(status, body, {{"Content-Type", "application/json"}});
}

std::string chunked_head(int status, const net::Headers& headers) {
  return head(status, headers) + "Transfer-Encoding: chunked\r\n\r\n";
}

std::string chunk(std::string_view data) {
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  return std::string{size, end} + "\r\n" + std::string{data} + "\r\n";
}

std::string last_chunk() {
  return "0\r\n\r\n";
}

}  // namespace kwatt::test
