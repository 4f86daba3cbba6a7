#pragma once
// Private to net/. The stream behind Client::open().
#include "net/connection.hpp"

namespace kwatt::net {

// `reader` has the header; `connection` belongs to the stream from now on.
std::unique_ptr<BodyStream> make_body_stream(std::unique_ptr<Connection> connection,
                                             MessageReader reader);

// True for Content-Encoding: gzip; removes the headers that describe the encoded form.
bool strip_gzip(Headers& headers);

// Decodes a whole body. Errors: protocol (not gzip, cut short, more than `limit` bytes decoded).
Result<std::string> gunzip(std::string body, std::size_t limit);

}  // namespace kwatt::net
