#pragma once
// Private to net/. Decodes Content-Encoding: gzip piece by piece (zlib).
#include <memory>
#include <string>

#include "base/result.hpp"

namespace kwatt::net {

class GzipDecoder {
 public:
  GzipDecoder();
  ~GzipDecoder();
  GzipDecoder(GzipDecoder&&) noexcept;
  GzipDecoder& operator=(GzipDecoder&&) noexcept;

  // Appends at most `most` decoded bytes to `out` and removes what it used from the front of
  // `input`. Bounded, because a few bytes can decode to a thousand times as many.
  // Errors: protocol, when the bytes are not gzip.
  Result<void> decode(std::string& input, std::string& out, std::size_t most);
  // True at the end of a complete gzip member: the body may end here.
  bool complete() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::net
