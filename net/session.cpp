#include "net/session.hpp"

#include <algorithm>
#include <exception>

#include <boost/system/system_error.hpp>
#include <fmt/format.h>

#include "base/log.hpp"

namespace kwatt::net {

namespace {

using std::chrono::steady_clock;

// While idle a connection holds little memory: there may be thousands.
constexpr std::size_t first_read_bytes = 2 * 1024;
constexpr std::size_t read_bytes = 16 * 1024;
// A body that comes faster than it is read is read in larger pieces.
constexpr std::size_t most_read_bytes = 256 * 1024;
// A body up to this size is sent together with its header; a larger one is not copied for that.
constexpr std::size_t together_bytes = 64 * 1024;
constexpr Duration linger_time{2'000};

std::string lowercase(std::string_view text) {
  std::string result{text};
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

Response plain_text(int status, const std::string& sentence) {
  return Response{status, {{"Content-Type", "text/plain; charset=utf-8"}}, sentence + "\n"};
}

}  // namespace

Task<void> Session::run() {
  const auto shaken =
      co_await transport_->handshake(steady_clock::now() + host_->options.limits.connect);
  if (!shaken) {
    log::debug("connection dropped in the TLS handshake",
               {{"peer", peer_}, {"error", shaken.error()}});
    co_return;
  }
  for (bool first = true; !host_->stopping; first = false) {
    const Next next = co_await serve_one(first);
    if (next == Next::close) break;
  }
  transport_->close();
}

Task<Session::Next> Session::serve_one(bool first) {
  const Limits& limits = host_->options.limits;
  MessageReader reader{MessageReader::Kind::request, limits.header_bytes, limits.body_bytes};
  auto refused = co_await read_header(reader, first);
  if (!refused) refused = co_await read_body(reader);
  if (refused) {
    if (refused->status == 0) co_return Next::close;
    Response told = plain_text(refused->status, refused->sentence);
    const ResponseShape farewell{.keep_alive = false};
    const bool sent = co_await respond(std::move(told), farewell, true);
    if (sent) co_await transport_->linger(steady_clock::now() + linger_time);
    co_return Next::close;
  }

  Message& message = reader.message();
  const bool head_only = message.method == "HEAD";
  Request request{head_only ? "GET" : std::move(message.method), std::move(message.target),
                  std::move(message.headers), std::move(message.body)};
  request.peer = peer_;
  Response response = co_await handle(std::move(request));
  const bool keep_alive = reader.keep_alive() && !host_->stopping &&
                          lowercase(response.headers.get("Connection")) != "close";
  const ResponseShape shape{.keep_alive = keep_alive, .http_1_0 = message.http_1_0};
  const bool sent = co_await respond(std::move(response), shape, !head_only);
  if (buffer_.empty()) buffer_ = {};
  co_return sent&& keep_alive ? Next::request : Next::close;
}

Task<std::optional<Session::Refusal>> Session::read_header(MessageReader& reader, bool first) {
  const Limits& limits = host_->options.limits;
  bool begun = !buffer_.empty();
  idle_ = !begun;
  idle_since_ = steady_clock::now();
  // On a kept connection the first byte may take long; the rest of the header may not.
  SteadyPoint deadline = idle_since_ + (first || begun ? limits.header : host_->options.keep_alive);

  auto fault = reader.feed(buffer_);
  while (!fault && !reader.header_done()) {
    const std::size_t size = begun ? read_bytes : first_read_bytes;
    const auto more = co_await fill(*transport_, buffer_, size, deadline);
    idle_ = false;
    if (!more && more.error().code == ErrorCode::timeout && begun)
      co_return Refusal{408, "the request header did not arrive in time"};
    if (!more || !*more) co_return Refusal{};
    if (!begun) deadline = steady_clock::now() + limits.header;
    begun = true;
    fault = reader.feed(buffer_);
  }
  if (fault) co_return refusal(*fault);

  Message& message = reader.message();
  if (!message.http_1_0 && message.headers.get("Host").empty())
    co_return Refusal{400, "the request has no Host header"};
  const std::string expect = lowercase(message.headers.get("Expect"));
  if (expect.empty() || message.http_1_0) co_return std::nullopt;
  if (expect != "100-continue")
    co_return Refusal{417, "the only known expectation is 100-continue"};
  if (!reader.done() && buffer_.empty() && message.body.empty()) {
    const auto sent = co_await transport_->write("HTTP/1.1 100 Continue\r\n\r\n",
                                                 steady_clock::now() + limits.header);
    if (!sent) co_return Refusal{};
  }
  co_return std::nullopt;
}

Task<std::optional<Session::Refusal>> Session::read_body(MessageReader& reader) {
  const Refusal too_late{408, "the request body did not arrive in time"};
  const SteadyPoint deadline = steady_clock::now() + host_->options.limits.total;
  std::size_t size = read_bytes;
  while (!reader.done()) {
    const std::span<char> room = reader.body_room(size);
    std::optional<Fault> fault;
    if (room.empty()) {
      const auto more = co_await fill(*transport_, buffer_, size, deadline);
      if (!more && more.error().code == ErrorCode::timeout) co_return too_late;
      if (!more || !*more) co_return Refusal{};
      fault = reader.feed(buffer_);
    } else {
      const auto count = co_await transport_->read(room.data(), room.size(), deadline);
      if (!count && count.error().code == ErrorCode::timeout) co_return too_late;
      if (!count || *count == 0) co_return Refusal{};
      if (*count == size) size = std::min(size * 2, most_read_bytes);
      fault = reader.body_read(*count);
    }
    if (fault) co_return refusal(*fault);
  }
  co_return std::nullopt;
}

Task<Response> Session::handle(Request request) {
  const std::string method = request.method;
  const std::string target = request.target.substr(0, request.target.find('?'));
  std::string what;
  try {
    co_return co_await host_->handler(std::move(request));
  } catch (const boost::system::system_error& error) {
    if (host_->stopping && error.code() == boost::asio::error::operation_aborted) throw;
    what = error.what();
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "not a std::exception";
  }
  log::error("request handler failed",
             {{"method", method}, {"path", target}, {"peer", peer_}, {"error", what}});
  // What it said stays in the log: it may tell a stranger too much.
  co_return plain_text(500, "internal error");
}

Task<bool> Session::respond(Response response, ResponseShape shape, bool with_body) {
  auto head = response_head(response, shape);
  std::string body = with_body ? std::move(response.body) : std::string{};
  if (!head) {
    log::error("response cannot be sent", {{"peer", peer_}, {"error", head.error()}});
    const Response instead = plain_text(500, "internal error");
    head = response_head(instead, shape);
    if (with_body) body = instead.body;
  }
  const SteadyPoint deadline = steady_clock::now() + host_->options.limits.total;
  const bool together = body.size() <= together_bytes;
  if (together) *head += body;
  const auto sent = co_await transport_->write(*head, deadline);
  if (!sent || together) co_return sent.has_value();
  const auto rest = co_await transport_->write(body, deadline);
  co_return rest.has_value();
}

Session::Refusal Session::refusal(Fault fault) const {
  const Limits& limits = host_->options.limits;
  switch (fault) {
    case Fault::header_too_large:
      return {431, fmt::format("the request header exceeds {} bytes", limits.header_bytes)};
    case Fault::body_too_large:
      return {413, fmt::format("the request body exceeds {} bytes", limits.body_bytes)};
    case Fault::malformed:
      return {400, "the request is not valid HTTP/1.1"};
    case Fault::incomplete:
      return {};
  }
  return {};
}

}  // namespace kwatt::net
