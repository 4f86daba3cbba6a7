#include "net/body_stream.hpp"

#include <optional>

#include "net/gzip.hpp"

namespace kwatt::net {

namespace {

constexpr std::size_t piece_bytes = 64 * 1024;

class ConnectionBody final : public BodyStream {
 public:
  ConnectionBody(std::unique_ptr<Connection> connection, MessageReader reader)
      : connection_(std::move(connection)), reader_(std::move(reader)) {
    // An empty body is not encoded, whatever the header says (HEAD, 204).
    if (strip_gzip(reader_.message().headers) && !(reader_.done() && raw().empty()))
      decoder_.emplace();
  }

  int status() const override { return reader_.message().status; }
  const Headers& headers() const override { return reader_.message().headers; }

  Task<Result<std::string_view>> read_some(Duration idle) override {
    for (;;) {
      if (failed_) co_return *failed_;
      if (auto taken = take(); !taken) {
        co_return broken(taken.error());
      }
      if (!piece_.empty()) co_return std::string_view{piece_};
      if (reader_.done()) {
        if (decoder_ && !decoder_->complete())
          co_return broken(fail(ErrorCode::protocol, "the gzip body is cut short"));
        co_return std::string_view{};
      }
      const auto deadline = std::chrono::steady_clock::now() + idle;
      const auto read = co_await read_more(*connection_, reader_, deadline);
      if (read) continue;
      if (read.error().code == ErrorCode::timeout)
        co_return broken(
            fail(ErrorCode::timeout, "nothing arrived for " + format_go_duration(idle)));
      co_return broken(read.error());
    }
  }

  Task<Result<std::string>> read_all(std::size_t limit, Duration idle) override {
    std::string all;
    for (;;) {
      const auto piece = co_await read_some(idle);
      if (!piece) co_return piece.error();
      if (piece->empty()) co_return std::move(all);
      if (all.size() + piece->size() > limit) co_return broken(fault_error(Fault::body_too_large));
      all += *piece;
    }
  }

 private:
  std::string& raw() { return reader_.message().body; }

  // Moves what has arrived into piece_, decoded; bounded when it is decoded.
  Result<void> take() {
    piece_.clear();
    if (decoder_) return decoder_->decode(raw(), piece_, piece_bytes);
    piece_.swap(raw());
    return {};
  }

  // The first error is final: the position in the stream is lost.
  Error broken(const Error& error) {
    connection_->transport->close();
    failed_ = error.with_context(connection_->name + ": reading the response body");
    return *failed_;
  }

  std::unique_ptr<Connection> connection_;
  MessageReader reader_;
  std::optional<GzipDecoder> decoder_;
  std::string piece_;
  std::optional<Error> failed_;
};

}  // namespace

std::unique_ptr<BodyStream> make_body_stream(std::unique_ptr<Connection> connection,
                                             MessageReader reader) {
  return std::make_unique<ConnectionBody>(std::move(connection), std::move(reader));
}

bool strip_gzip(Headers& headers) {
  const auto encoding = headers.get("Content-Encoding");
  if (encoding != "gzip" && encoding != "x-gzip") return false;
  headers.erase("Content-Encoding");
  headers.erase("Content-Length");
  return true;
}

Result<std::string> gunzip(std::string body, std::size_t limit) {
  GzipDecoder decoder;
  std::string out;
  for (;;) {
    const std::size_t before = out.size();
    if (auto decoded = decoder.decode(body, out, piece_bytes); !decoded) return decoded.error();
    if (out.size() > limit) return fault_error(Fault::body_too_large);
    if (out.size() == before) break;  // no progress: all input is used
  }
  if (!decoder.complete()) return fail(ErrorCode::protocol, "the gzip body is cut short");
  return out;
}

}  // namespace kwatt::net
