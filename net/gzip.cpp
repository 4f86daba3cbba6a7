#include "net/gzip.hpp"

#include <new>
#include <zlib.h>

#include <fmt/format.h>

namespace kwatt::net {

struct GzipDecoder::Impl {
  z_stream stream{};
  bool complete = false;

  Impl() {
    constexpr int window_and_gzip = 15 + 16;
    if (inflateInit2(&stream, window_and_gzip) != Z_OK) throw std::bad_alloc{};
  }
  ~Impl() { inflateEnd(&stream); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

GzipDecoder::GzipDecoder() : impl_(std::make_unique<Impl>()) {}
GzipDecoder::~GzipDecoder() = default;
GzipDecoder::GzipDecoder(GzipDecoder&&) noexcept = default;
GzipDecoder& GzipDecoder::operator=(GzipDecoder&&) noexcept = default;

Result<void> GzipDecoder::decode(std::string& input, std::string& out, std::size_t most) {
  z_stream& stream = impl_->stream;
  const std::size_t before = out.size();
  out.resize(before + most);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
  stream.avail_out = static_cast<uInt>(most);

  int code = Z_OK;
  // zlib may still hold output when all input is used, hence one call also without input.
  do {
    if (impl_->complete) {  // gzip members may follow one another
      if (stream.avail_in == 0) break;
      inflateReset(&stream);
      impl_->complete = false;
    }
    code = inflate(&stream, Z_NO_FLUSH);
    impl_->complete = code == Z_STREAM_END;
  } while (impl_->complete);

  out.resize(out.size() - stream.avail_out);
  input.erase(0, input.size() - stream.avail_in);
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return {};
  return fail(ErrorCode::protocol, fmt::format("the body is not valid gzip: {}",
                                               stream.msg != nullptr ? stream.msg : zError(code)));
}

bool GzipDecoder::complete() const {
  return impl_->complete;
}

}  // namespace kwatt::net
