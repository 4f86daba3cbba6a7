#pragma once
// Private to net/. Reads one HTTP/1.1 message from bytes, without any I/O: Beast's parser with our
// limits. A reader is for one message.
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace kwatt::net {

// What the peer got wrong, as far as the answer to it differs.
enum class Fault { malformed, header_too_large, body_too_large, incomplete };

// A few words for error messages, for example "the header is larger than allowed".
std::string_view describe(Fault fault);

// The message as far as it has been read.
struct Message {
  std::string method, target;  // requests
  int status = 0;              // responses
  bool http_1_0 = false;
  Headers headers;
  std::string body;  // may be taken out piece by piece
};

class MessageReader {
 public:
  enum class Kind { request, response, response_to_head };

  // `body_bytes` bounds the whole body, all chunks together; nullopt: endless streams.
  MessageReader(Kind kind, std::size_t header_bytes, std::optional<std::size_t> body_bytes);
  ~MessageReader();
  MessageReader(MessageReader&&) noexcept;
  MessageReader& operator=(MessageReader&&) noexcept;

  // Removes what it can use from the front of `buffer`. What stays is an unfinished line, to be
  // offered again with more behind it, or the beginning of the next message.
  std::optional<Fault> feed(std::string& buffer);
  // A large body need not go through a buffer: room for at most `most` of the bytes that it still
  // lacks, behind those that were read, until any other call. Empty: what comes next must go
  // through feed(). Until done() the body may be longer than what was read.
  std::span<char> body_room(std::size_t most);
  // So many bytes were read into the room.
  std::optional<Fault> body_read(std::size_t count);
  // The peer closed its side in an orderly way.
  std::optional<Fault> end();

  bool header_done() const;
  bool done() const;
  // After done(): the connection may carry another message.
  bool keep_alive() const;
  Message& message();
  const Message& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::net
