#pragma once
// Private to net/. One client connection and the first half of an exchange on it.
#include <memory>
#include <string>

#include "net/message_reader.hpp"
#include "net/transport.hpp"

namespace kwatt::net {

struct Connection {
  std::unique_ptr<Transport> transport;
  SslContext context;     // with which it was made; null: plain
  std::string name;       // "host:port", for error messages
  std::string buffer;     // received, not yet parsed
  bool answered = false;  // a byte of the current response has arrived
  SteadyPoint idle_since{};
};

// What goes out, already in bytes.
struct Outgoing {
  std::string head;
  std::string body;
};

// Sends the request and reads until the response header is complete (interim responses skipped).
// `reader` is fresh afterwards and holds the header and perhaps some of the body.
// `connection` and `outgoing` must outlive the task.
Task<Result<MessageReader>> begin_exchange(Connection& connection, const Outgoing& outgoing,
                                           MessageReader::Kind kind, Limits limits,
                                           std::optional<std::size_t> body_bytes,
                                           SteadyPoint total);

// Reads and parses one piece more. Errors: unavailable when the connection ends inside the message.
Task<Result<void>> read_more(Connection& connection, MessageReader& reader, SteadyPoint deadline);

// The error of a peer that broke the protocol or a limit.
Error fault_error(Fault fault);

// After a complete response: nothing forbids the next exchange on this connection.
bool reusable(Connection& connection, const MessageReader& reader);

}  // namespace kwatt::net
