// Client::open(): bodies read piece by piece, as watches are.
#include <doctest/doctest.h>

#include "net/client.hpp"
#include "net/run.hpp"
#include "test/net/gzip_text.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

using namespace kwatt;
using namespace std::chrono_literals;
using boost::asio::io_context;
using net::BodyStream;
using net::Client;
using net::Request;
using test::chunk;
using test::chunked_head;
using test::last_chunk;
using test::Script;
using test::ScriptedPeer;

namespace {

// What one reading of a stream to its end gave.
struct Reading {
  std::size_t bytes = 0;
  std::string text;  // the first 1000 bytes
  int pieces = 0;
  std::optional<Error> error;
};

net::Task<Reading> read_to_end(BodyStream& stream, Duration idle) {
  Reading reading;
  for (;;) {
    const auto piece = co_await stream.read_some(idle);
    if (!piece) {
      reading.error = piece.error();
      break;
    }
    if (piece->empty()) break;
    ++reading.pieces;
    reading.bytes += piece->size();
    if (reading.text.size() < 1000) reading.text += *piece;
  }
  co_return reading;
}

struct Fixture {
  io_context io;
  ScriptedPeer peer{io.get_executor()};
  Client client{io.get_executor(), peer.origin(), {}};

  std::unique_ptr<BodyStream> open(net::Limits limits = {}) {
    auto stream = test::run_task(io, client.open(Request{"GET", "/watch"}, limits));
    REQUIRE(stream.has_value());
    return std::move(*stream);
  }
  Reading read(BodyStream& stream, Duration idle = 2s) {
    return test::run_task(io, read_to_end(stream, idle));
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "pieces arrive as the peer sends them, and the end is an empty piece") {
  peer.reply(Script{chunked_head()}
                 .send(chunk("one\n"))
                 .wait(20ms)
                 .send(chunk("two\n"))
                 .send(last_chunk()));
  const auto stream = open();
  CHECK(stream->status() == 200);
  CHECK(stream->headers().get("transfer-encoding") == "chunked");
  const auto reading = read(*stream);
  CHECK_FALSE(reading.error);
  CHECK(reading.text == "one\ntwo\n");
  CHECK(reading.pieces >= 2);
  // The end stays the end.
  CHECK(test::run_task(io, stream->read_some(1s))->empty());
}

TEST_CASE_FIXTURE(Fixture, "a stream far over the body limit passes") {
  Script script{chunked_head()};
  const std::string piece = chunk(std::string(1024 * 1024, 'x'));
  for (int i = 0; i < 20; ++i) script.send(piece);
  script.send(last_chunk());
  peer.reply(std::move(script));
  const auto stream = open({.body_bytes = 1000});
  const auto reading = read(*stream);
  CHECK_FALSE(reading.error);
  CHECK(reading.bytes == 20U * 1024U * 1024U);
}

TEST_CASE_FIXTURE(Fixture, "the total time limit does not end a stream") {
  Script script{chunked_head()};
  for (int i = 0; i < 6; ++i) script.wait(20ms).send(chunk("x"));
  peer.reply(std::move(script).send(last_chunk()));
  const auto stream = open({.total = 50ms});
  const auto reading = read(*stream);
  CHECK_FALSE(reading.error);
  CHECK(reading.bytes == 6);
}

TEST_CASE_FIXTURE(Fixture, "the idle time begins anew with every read") {
  Script script{chunked_head()};
  for (int i = 0; i < 5; ++i) script.wait(60ms).send(chunk("x"));
  peer.reply(std::move(script).stall());
  const auto stream = open();
  const auto started = std::chrono::steady_clock::now();
  const auto reading = read(*stream, 150ms);  // less than all pauses together
  REQUIRE(reading.error);
  CHECK(reading.bytes == 5);
  CHECK(reading.error->code == ErrorCode::timeout);
  CHECK(contains(reading.error->message, "nothing arrived for 150ms"));
  CHECK(std::chrono::steady_clock::now() - started > 400ms);
  // An error is final.
  const auto again = test::run_task(io, stream->read_some(1s));
  REQUIRE(again.has_error());
  CHECK(again.error().code == ErrorCode::timeout);
}

TEST_CASE("a lost connection is told from the clean end") {
  struct Case {
    std::string name;
    Script script;
    std::string text;
    std::optional<ErrorCode> error;
  };
  const Case cases[] = {
      {"last chunk", Script{chunked_head() + chunk("ab") + last_chunk()}, "ab", {}},
      {"length reached", test::response(200, "ab"), "ab", {}},
      {"no framing, closed", Script{"HTTP/1.1 200 OK\r\n\r\nab"}.close(), "ab", {}},
      {"nothing at all", test::response(200, ""), "", {}},
      {"closed between chunks", Script{chunked_head() + chunk("ab")}.close(), "ab",
       ErrorCode::unavailable},
      {"closed inside a chunk", Script{chunked_head() + "9\r\nab"}.close(), "ab",
       ErrorCode::unavailable},
      {"closed before the length", Script{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"}.close(),
       "ab", ErrorCode::unavailable},
      {"reset", Script{chunked_head() + chunk("ab")}.wait(20ms).reset(), "ab",
       ErrorCode::unavailable},
      {"broken chunk", Script{chunked_head() + chunk("ab")}.wait(20ms).send("zz\r\n"), "ab",
       ErrorCode::protocol},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture f;
    f.peer.reply(c.script);
    const auto stream = f.open();
    const auto reading = f.read(*stream);
    REQUIRE(reading.error.has_value() == c.error.has_value());
    if (c.error) {
      CHECK(reading.error->code == *c.error);
    }
    CHECK(reading.text == c.text);
  }
}

TEST_CASE("a gzip stream is decoded as it arrives") {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "event " + std::to_string(i) + "\n";
  const std::string packed = test::gzip(text);
  const auto half = packed.size() / 2;
  const auto head = chunked_head(200, {{"Content-Encoding", "gzip"}});

  SUBCASE("whole") {
    Fixture f;
    f.peer.reply(Script{head}
                     .send(chunk(packed.substr(0, half)))
                     .wait(10ms)
                     .send(chunk(packed.substr(half)) + last_chunk()));
    const auto stream = f.open();
    CHECK(stream->headers().get("content-encoding").empty());
    const auto reading = f.read(*stream);
    CHECK_FALSE(reading.error);
    CHECK(reading.bytes == text.size());
    CHECK(reading.text.substr(0, 1000) == text.substr(0, 1000));
  }
  SUBCASE("cut short by a peer that thinks it is complete") {
    Fixture f;
    f.peer.reply(head + chunk(packed.substr(0, half)) + last_chunk());
    const auto stream = f.open();
    const auto reading = f.read(*stream);
    REQUIRE(reading.error);
    CHECK(reading.error->code == ErrorCode::protocol);
  }
  SUBCASE("a small piece that decodes to a lot comes in bounded pieces") {
    Fixture f;
    f.peer.reply(head + chunk(test::gzip(std::string(10'000'000, 'x'))) + last_chunk());
    const auto stream = f.open();
    const auto reading = f.read(*stream);
    CHECK_FALSE(reading.error);
    CHECK(reading.bytes == 10'000'000);
    CHECK(reading.pieces > 100);
  }
}

TEST_CASE_FIXTURE(Fixture, "an error body is read whole, within its limit") {
  const std::string body = R"({"kind":"Status","code":410})";
  peer.reply(test::json_response(410, body));
  const auto stream = open();
  CHECK(stream->status() == 410);
  CHECK(*test::run_task(io, stream->read_all(1000, 1s)) == body);

  peer.reply(test::json_response(500, body));
  const auto other = open();
  const auto refused = test::run_task(io, other->read_all(10, 1s));
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == ErrorCode::protocol);
}

TEST_CASE_FIXTURE(Fixture, "a stream has a connection of its own and closes it when destroyed") {
  peer.reply(test::response(200, "kept"));
  peer.reply(Script{chunked_head()}.stall());
  peer.reply(test::response(200, "still here"));
  REQUIRE(test::run_task(io, client.send(Request{})).has_value());
  auto stream = open();
  CHECK(test::run_task(io, client.send(Request{}))->body == "still here");
  CHECK(peer.connections() == 2);
  CHECK(peer.open_connections() == 2);
  stream.reset();
  test::run_task(io, net::sleep(20ms));
  CHECK(peer.open_connections() == 1);
}

TEST_CASE_FIXTURE(Fixture, "opening fails like sending does") {
  peer.reply(Script{}.stall());
  const auto late = test::run_task(io, client.open(Request{}, {.header = 50ms}));
  REQUIRE(late.has_error());
  CHECK(late.error().code == ErrorCode::timeout);
  peer.reply(Script{}.close());
  const auto lost = test::run_task(io, client.open(Request{}));
  REQUIRE(lost.has_error());
  CHECK(lost.error().code == ErrorCode::unavailable);
  CHECK(peer.connections() == 2);
}
