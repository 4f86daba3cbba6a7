#include "net/message_reader.hpp"

#include <algorithm>

#include <boost/beast/http/basic_parser.hpp>

namespace kwatt::net {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

namespace {

// Room for the longest line of a chunked body that is not data (chunk size and extensions).
constexpr std::size_t chunk_line_bytes = 4096;

template <bool is_request>
class Parser final : public http::basic_parser<is_request> {
 public:
  Parser(Message& message, std::size_t header_bytes) : message_(message), left_(header_bytes) {}

  // The next bytes of the body are where they belong already.
  void body_is_in_place(bool yes) { in_place_ = yes; }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code& ec) override {
    message_.method.assign(method.data(), method.size());
    message_.target.assign(target.data(), target.size());
    message_.http_1_0 = version < 11;
    count(method.size() + target.size(), ec);
  }
  void on_response_impl(int status, string_view reason, int version, error_code& ec) override {
    message_.status = status;
    message_.http_1_0 = version < 11;
    count(reason.size(), ec);
  }
  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    count(name.size() + value.size(), ec);
    // Fields after the header are trailers, which nobody asked for.
    if (!ec && !this->is_header_done())
      message_.headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    // Room that is not written to yet costs no memory, so a stated length may be believed: within
    // the limit (Beast has refused more before this), and beyond any body that there is, never.
    constexpr std::uint64_t most = 64U << 20U;
    if (length) message_.body.reserve(static_cast<std::size_t>(std::min(*length, most)));
  }
  std::size_t on_body_impl(string_view body, error_code&) override {
    if (!in_place_) message_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    message_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  // Beast bounds the header bytes of one call only: a header that trickles in would be endless.
  void count(std::size_t bytes, error_code& ec) {
    constexpr std::size_t punctuation = 4;
    if (bytes + punctuation > left_) {
      ec = http::error::header_limit;
      return;
    }
    left_ -= bytes + punctuation;
  }

  Message& message_;
  std::size_t left_;
  bool in_place_ = false;
};

Fault to_fault(const error_code& ec) {
  if (ec == http::error::header_limit) return Fault::header_too_large;
  if (ec == http::error::body_limit) return Fault::body_too_large;
  if (ec == http::error::partial_message) return Fault::incomplete;
  return Fault::malformed;
}

}  // namespace

std::string_view describe(Fault fault) {
  switch (fault) {
    case Fault::malformed:
      return "not valid HTTP/1.1";
    case Fault::header_too_large:
      return "the header is larger than allowed";
    case Fault::body_too_large:
      return "the body is larger than allowed";
    case Fault::incomplete:
      return "the connection was lost before the end";
  }
  return "not valid HTTP/1.1";
}

// The parser is one of two types; the functions that differ only in it are written once.
struct MessageReader::Impl {
  Message message;
  std::size_t header_bytes;
  // Of the body, while room behind it was given out. What is left of the room stays for the next
  // read: making room writes zeros, and sockets seldom fill all of it.
  std::optional<std::size_t> filled;
  std::optional<Parser<true>> request;
  std::optional<Parser<false>> response;

  explicit Impl(std::size_t bytes) : header_bytes(bytes) {}

  void give_back_room() {
    if (filled) message.body.resize(*filled);
    filled.reset();
  }

  template <class F>
  decltype(auto) with_parser(F&& f) {
    if (request) return f(*request);
    return f(*response);
  }
};

MessageReader::MessageReader(Kind kind, std::size_t header_bytes,
                             std::optional<std::size_t> body_bytes)
    : impl_(std::make_unique<Impl>(header_bytes)) {
  if (kind == Kind::request)
    impl_->request.emplace(impl_->message, header_bytes);
  else
    impl_->response.emplace(impl_->message, header_bytes);
  impl_->with_parser([&](auto& parser) {
    parser.eager(true);
    parser.skip(kind == Kind::response_to_head);
    parser.header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(header_bytes, 1U << 30U)));
    if (body_bytes)
      parser.body_limit(*body_bytes);
    else
      parser.body_limit(boost::none);
  });
}

MessageReader::~MessageReader() = default;
MessageReader::MessageReader(MessageReader&&) noexcept = default;
MessageReader& MessageReader::operator=(MessageReader&&) noexcept = default;

std::optional<Fault> MessageReader::feed(std::string& buffer) {
  return impl_->with_parser([&](auto& parser) -> std::optional<Fault> {
    if (buffer.empty() || parser.is_done()) return std::nullopt;
    impl_->give_back_room();
    error_code ec;
    const std::size_t used = parser.put(boost::asio::buffer(buffer), ec);
    buffer.erase(0, used);
    if (ec && ec != http::error::need_more) return to_fault(ec);
    if (!parser.is_done() && buffer.size() > std::max(impl_->header_bytes, chunk_line_bytes))
      return parser.is_header_done() ? Fault::malformed : Fault::header_too_large;
    return std::nullopt;
  });
}

std::span<char> MessageReader::body_room(std::size_t most) {
  return impl_->with_parser([&](auto& parser) -> std::span<char> {
    if (!parser.is_header_done() || parser.is_done()) return {};
    const auto lacks = parser.content_length_remaining();
    if (!lacks) return {};
    std::string& body = impl_->message.body;
    if (!impl_->filled) impl_->filled = body.size();
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(*lacks, most));
    if (body.size() < *impl_->filled + size) body.resize(*impl_->filled + size);
    return {body.data() + *impl_->filled, size};
  });
}

std::optional<Fault> MessageReader::body_read(std::size_t count) {
  return impl_->with_parser([&](auto& parser) -> std::optional<Fault> {
    if (count == 0 || !impl_->filled) return std::nullopt;
    error_code ec;
    parser.body_is_in_place(true);
    parser.put(boost::asio::buffer(impl_->message.body.data() + *impl_->filled, count), ec);
    parser.body_is_in_place(false);
    *impl_->filled += count;
    if (parser.is_done()) impl_->give_back_room();
    if (ec && ec != http::error::need_more) return to_fault(ec);
    return std::nullopt;
  });
}

std::optional<Fault> MessageReader::end() {
  return impl_->with_parser([](auto& parser) -> std::optional<Fault> {
    if (!parser.got_some()) return Fault::incomplete;
    if (parser.is_done()) return std::nullopt;
    error_code ec;
    parser.put_eof(ec);
    if (ec) return to_fault(ec);
    return std::nullopt;
  });
}

bool MessageReader::header_done() const {
  return impl_->with_parser([](auto& parser) { return parser.is_header_done(); });
}

bool MessageReader::done() const {
  return impl_->with_parser([](auto& parser) { return parser.is_done(); });
}

bool MessageReader::keep_alive() const {
  return impl_->with_parser(
      [](auto& parser) { return parser.is_header_done() && parser.keep_alive(); });
}

Message& MessageReader::message() {
  return impl_->message;
}

const Message& MessageReader::message() const {
  return impl_->message;
}

}  // namespace kwatt::net
