// Reading and writing HTTP messages, and gzip: bytes in, values out.
#include <zlib.h>

#include <doctest/doctest.h>

#include "net/body_stream.hpp"
#include "net/gzip.hpp"
#include "net/message_reader.hpp"
#include "net/message_writer.hpp"
#include "test/net/gzip_text.hpp"

using namespace kwatt;
using net::Fault;
using net::MessageReader;
using Kind = net::MessageReader::Kind;

namespace {

// Feeds `text` in pieces of `step` bytes.
std::optional<Fault> feed_all(MessageReader& reader, std::string_view text, std::size_t step) {
  std::string buffer;
  while (!text.empty()) {
    const auto size = std::min(step, text.size());
    buffer.append(text.substr(0, size));
    text.remove_prefix(size);
    if (const auto fault = reader.feed(buffer)) return fault;
  }
  return std::nullopt;
}

const std::string chunked =
    "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n";

}  // namespace

TEST_CASE("a message is read the same however its bytes are cut") {
  for (std::size_t step = 1; step <= chunked.size(); ++step) {
    INFO(step);
    MessageReader reader{Kind::response, 1024, 1024};
    CHECK_FALSE(feed_all(reader, chunked, step));
    REQUIRE(reader.done());
    CHECK(reader.keep_alive());
    CHECK(reader.message().status == 200);
    CHECK(reader.message().body == "hello world");
    CHECK(reader.message().headers.get("a") == "b");
    CHECK(reader.message().headers.get("trailer").empty());
  }
}

TEST_CASE("the bytes of the next message stay in the buffer") {
  MessageReader reader{Kind::request, 1024, 1024};
  std::string buffer = "POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /b";
  CHECK_FALSE(reader.feed(buffer));
  CHECK(reader.done());
  CHECK(reader.message().method == "POST");
  CHECK(reader.message().target == "/a");
  CHECK(reader.message().body == "hi");
  CHECK(buffer == "GET /b");
}

TEST_CASE("what a peer may not send is a fault") {
  struct Case {
    std::string name;
    Kind kind;
    std::string text;
    Fault want;
  };
  const std::string big(200, 'x');
  const Case cases[] = {
      {"not HTTP", Kind::response, "SSH-2.0-OpenSSH\r\n\r\n", Fault::malformed},
      {"HTTP/2", Kind::response, "HTTP/2.0 200 OK\r\n\r\n", Fault::malformed},
      {"header over the limit", Kind::response, "HTTP/1.1 200 OK\r\nA: " + big + "\r\n\r\n",
       Fault::header_too_large},
      {"many small headers", Kind::request,
       "GET / HTTP/1.1\r\n" +
           [] {
             std::string many;
             for (int i = 0; i < 30; ++i) many += "A: b\r\n";
             return many;
           }() +
           "\r\n",
       Fault::header_too_large},
      {"stated length over the limit", Kind::request,
       "PUT / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", Fault::body_too_large},
      {"chunks over the limit together", Kind::response,
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
       "3c\r\n" +
           std::string(60, 'a') + "\r\n3c\r\n" + std::string(60, 'b') + "\r\n",
       Fault::body_too_large},
      {"body without length over the limit", Kind::response, "HTTP/1.1 200 OK\r\n\r\n" + big,
       Fault::body_too_large},
      {"length and chunks", Kind::request,
       "PUT / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       Fault::malformed},
      {"two lengths", Kind::request,
       "PUT / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", Fault::malformed},
      {"bad chunk size", Kind::response,
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Fault::malformed},
  };
  for (const Case& c : cases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, c.text.size()}) {
      INFO(c.name << " in steps of " << step);
      MessageReader reader{c.kind, 128, 100};
      const auto fault = feed_all(reader, c.text, step);
      REQUIRE(fault.has_value());
      CHECK(*fault == c.want);
      CHECK_FALSE(reader.done());
    }
  }
}

TEST_CASE("a stated length is read straight into the body, and not a byte more") {
  MessageReader reader{Kind::request, 1024, 1024};
  CHECK(reader.body_room(8).empty());  // no header yet
  std::string buffer = "POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\na";
  CHECK_FALSE(reader.feed(buffer).has_value());
  const auto read = [&](std::string_view text, std::size_t room) {
    const std::span<char> into = reader.body_room(16);
    REQUIRE(into.size() == room);
    text.copy(into.data(), into.size());
    CHECK_FALSE(reader.body_read(text.size()).has_value());
  };
  read("bc", 5);
  read("", 3);
  CHECK(reader.message().body.starts_with("abc"));
  buffer = "d";  // the other way, in between
  CHECK_FALSE(reader.feed(buffer).has_value());
  CHECK_FALSE(reader.done());
  read("ef", 2);
  CHECK(reader.done());
  CHECK(reader.message().body == "abcdef");
  CHECK(reader.body_room(8).empty());

  MessageReader chunked{Kind::request, 1024, 1024};
  buffer = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK_FALSE(chunked.feed(buffer).has_value());
  CHECK(chunked.body_room(8).empty());
}

TEST_CASE("a chunk line without end does not fill the memory") {
  MessageReader reader{Kind::response, 128, std::nullopt};
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'x');
  CHECK(feed_all(reader, text, 512).has_value());
}

TEST_CASE("the end of the connection ends only a body that is delimited by it") {
  struct Case {
    std::string text;
    bool complete;
  };
  const Case cases[] = {
      {"", false},
      {"HTTP/1.1 200", false},
      {"HTTP/1.1 200 OK\r\nA: b\r\n", false},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false},
      {"HTTP/1.1 200 OK\r\n\r\nhello", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    MessageReader reader{Kind::response, 1024, 1024};
    CHECK_FALSE(feed_all(reader, c.text, 1024));
    CHECK(reader.end().has_value() != c.complete);
    CHECK(reader.done() == c.complete);
  }
}

TEST_CASE("a response to HEAD has no body whatever its length says") {
  MessageReader reader{Kind::response_to_head, 1024, 10};
  CHECK_FALSE(feed_all(reader, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 9));
  CHECK(reader.done());
  CHECK(reader.keep_alive());
}

TEST_CASE("an endless body passes when no limit is set") {
  MessageReader reader{Kind::response, 1024, std::nullopt};
  std::string buffer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string piece = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  std::size_t total = 0;
  for (int i = 0; i < 320; ++i) {  // 20 MiB
    buffer += piece;
    REQUIRE_FALSE(reader.feed(buffer));
    total += reader.message().body.size();
    reader.message().body.clear();
  }
  CHECK(total == 320U * 0x10000U);
}

TEST_CASE("a request header is complete and cannot be split by its values") {
  const net::Origin origin{true, "::1", 6443};
  const net::Request request{
      "POST",
      "/api?x=1",
      {{"Accept", "application/json"}, {"Content-Length", "99"}, {"Connection", "close"}},
      "{}"};
  const auto head = net::request_head(request, origin);
  REQUIRE(head.has_value());
  CHECK(*head == "POST /api?x=1 HTTP/1.1\r\nHost: [::1]:6443\r\nUser-Agent: kwatt/" KWATT_VERSION
                 "\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n");

  struct Case {
    std::string name;
    net::Request request;
  };
  const Case cases[] = {
      {"line break in a value", net::Request{"GET", "/", {{"A", "b\r\nEvil: 1"}}}},
      {"bare line feed", net::Request{"GET", "/", {{"A", "b\nc"}}}},
      {"NUL", net::Request{"GET", "/", {{"A", std::string{"a\0b", 3}}}}},
      {"space in a name", net::Request{"GET", "/", {{"A b", "c"}}}},
      {"empty name", net::Request{"GET", "/", {{"", "c"}}}},
      {"space in the target", net::Request{"GET", "/a b"}},
      {"line break in the target", net::Request{"GET", "/a\r\nX: y"}},
      {"empty target", net::Request{"GET", ""}},
      {"method with a space", net::Request{"GET /x"}},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto refused = net::request_head(c.request, origin);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("a response header states the length of the body") {
  CHECK(*net::response_head(net::Response{200, {{"A", "b"}}, "hello"}, {}) ==
        "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n");
  CHECK(*net::response_head(net::Response{204, {}, ""}, {.keep_alive = false}) ==
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  CHECK(*net::response_head(net::Response{404, {}, ""}, {.http_1_0 = true}) ==
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(net::response_head(net::Response{200, {{"A", "b\r\nc"}}, ""}, {}).has_error());
  CHECK(net::response_head(net::Response{100, {}, ""}, {}).has_error());
}

TEST_CASE("only methods that may be repeated are idempotent") {
  for (const auto* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
    CHECK(net::is_idempotent(method));
  for (const auto* method : {"POST", "PATCH", "get", ""}) CHECK_FALSE(net::is_idempotent(method));
}

TEST_CASE("gzip is decoded however it is cut, and never more than asked for at a time") {
  const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 5000; ++i) lines += "line " + std::to_string(i) + "\n";
    return lines;
  }();
  const std::string packed = test::gzip(text);
  for (const std::size_t step : {std::size_t{1}, std::size_t{100}, packed.size()}) {
    net::GzipDecoder decoder;
    std::string out, input;
    for (std::size_t at = 0; at < packed.size(); at += step) {
      input += packed.substr(at, step);
      for (;;) {
        const auto before = out.size();
        REQUIRE(decoder.decode(input, out, 1000).has_value());
        CHECK(out.size() - before <= 1000);
        if (out.size() == before) break;
      }
      CHECK(input.empty());
    }
    CHECK(out == text);
    CHECK(decoder.complete());
  }
}

TEST_CASE("gunzip refuses what is not gzip, cut short or too large") {
  const std::string packed = test::gzip(std::string(100'000, 'x'));
  CHECK(net::gunzip(packed, 100'000)->size() == 100'000);
  CHECK(net::gunzip(packed + test::gzip("more"), 100'004)->size() == 100'004);
  const std::string bad[] = {packed.substr(0, packed.size() - 1), packed + "tail", "plain text"};
  for (const auto& body : bad) {
    const auto result = net::gunzip(body, 1'000'000);
    REQUIRE(result.has_error());
    CHECK(result.error().code == ErrorCode::protocol);
  }
  const auto bomb = net::gunzip(packed, 99'999);
  REQUIRE(bomb.has_error());
  CHECK(bomb.error().message.find("larger than allowed") != std::string::npos);
}
