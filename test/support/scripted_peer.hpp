#pragma once
// A raw TCP peer for tests of HTTP clients: it reads requests and plays back bytes exactly as
// scripted, however wrong they are. Plain TCP on loopback, any free port.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "net/http.hpp"

namespace kwatt::test {

// What happens after one request: steps in order. Afterwards the connection waits for the next
// request, unless a step closed it.
class Script {
 public:
  Script() = default;
  Script(std::string bytes) { send(std::move(bytes)); }  // NOLINT: a text is a script
  Script(const char* bytes) { send(bytes); }             // NOLINT

  Script&& send(std::string bytes) &&;
  Script& send(std::string bytes) &;
  Script&& wait(Duration duration) &&;
  Script& wait(Duration duration) &;
  Script&& close() &&;  // orderly (FIN)
  Script&& reset() &&;  // abruptly (RST)
  Script&& stall() &&;  // nothing more, until the client closes

  struct Step {
    enum class Kind { send, wait, close, reset, stall };
    Kind kind;
    std::string bytes;
    Duration duration{};
  };
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// Listens as soon as it is made; works while its io_context runs, closes everything when destroyed.
// ScriptedPeer peer(io.get_executor());
// peer.reply(json_response(200, "{}"));              // for the first request, over all connections
// peer.reply(Script{}.send(chunked_head()).send(chunk("a")).stall());
class ScriptedPeer {
 public:
  explicit ScriptedPeer(boost::asio::any_io_executor executor);
  ~ScriptedPeer();
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  // Scripts are used up in order, one per request, whichever connection it comes on.
  void reply(Script script);
  // For every request after the scripts are used up. Without it such a request gets status 599.
  void always(Script script);
  // While true, every new connection is closed as soon as it is accepted.
  void hang_up_on_connect(bool hang_up);

  std::uint16_t port() const;
  net::Origin origin() const;  // plain http://127.0.0.1:port
  int connections() const;     // accepted so far
  int open_connections() const;
  // Requests as they came, header and body, in order.
  const std::vector<std::string>& requests() const;
  // The first line of each request: "GET /version HTTP/1.1".
  std::vector<std::string> request_lines() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Whole responses and parts of them.
std::string response(int status, std::string_view body, const net::Headers& headers = {});
std::string json_response(int status, std::string_view body);
std::string chunked_head(int status = 200, const net::Headers& headers = {});
std::string chunk(std::string_view data);
std::string last_chunk();

}  // namespace kwatt::test
