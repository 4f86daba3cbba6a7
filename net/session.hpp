#pragma once
// Private to net/. One accepted connection: requests in, responses out, until somebody stops.
#include <memory>
#include <optional>
#include <string>

#include "net/message_reader.hpp"
#include "net/message_writer.hpp"
#include "net/server.hpp"
#include "net/transport.hpp"

namespace kwatt::net {

// Shared by the sessions of one server.
struct SessionHost {
  ServerOptions options;
  Handler handler;
  bool stopping = false;  // no further request on any connection
};

class Session {
 public:
  Session(std::shared_ptr<const SessionHost> host, std::unique_ptr<Transport> transport)
      : host_(std::move(host)), transport_(std::move(transport)), peer_(transport_->peer()) {}

  // Never fails: what goes wrong ends the connection. The session must outlive the task.
  Task<void> run();
  // No byte of a request has arrived: may be closed without loss.
  bool idle() const { return idle_; }
  SteadyPoint idle_since() const { return idle_since_; }
  const std::string& peer() const { return peer_; }
  void close() { transport_->close(); }

 private:
  // Why a request never reaches the handler. Status 0: nobody is there to be told.
  struct Refusal {
    int status = 0;
    std::string sentence;
  };
  enum class Next { request, close };

  Task<Next> serve_one(bool first);
  Task<std::optional<Refusal>> read_header(MessageReader& reader, bool first);
  Task<std::optional<Refusal>> read_body(MessageReader& reader);
  Task<Response> handle(Request request);
  Task<bool> respond(Response response, ResponseShape shape, bool with_body);
  Refusal refusal(Fault fault) const;

  std::shared_ptr<const SessionHost> host_;
  std::unique_ptr<Transport> transport_;
  std::string peer_;
  std::string buffer_;  // received, not yet parsed
  bool idle_ = true;
  SteadyPoint idle_since_ = std::chrono::steady_clock::now();
};

}  // namespace kwatt::net
