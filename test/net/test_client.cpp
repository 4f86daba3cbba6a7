// The client against a scripted peer: what it does when the other side misbehaves.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <doctest/doctest.h>

#include "net/client.hpp"
#include "net/run.hpp"
#include "test/net/gzip_text.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

using namespace kwatt;
using namespace std::chrono_literals;
using boost::asio::io_context;
using net::Client;
using net::Request;
using net::Response;
using test::Script;
using test::ScriptedPeer;

namespace {

struct Fixture {
  io_context io;
  ScriptedPeer peer{io.get_executor()};
  Client client{io.get_executor(), peer.origin(), {}};

  Result<Response> send(Request request = {}, net::Limits limits = {}) {
    return test::run_task(io, client.send(std::move(request), limits));
  }
  // Lets the peer notice what the client did.
  void settle() { test::run_task(io, net::sleep(20ms)); }
};

net::Task<void> send_and_count(Client& client, int* answered) {
  const auto response = co_await client.send({});
  *answered += response.has_value() ? 1 : 0;
}

net::Task<void> send_and_note(Client& client, std::optional<ErrorCode>* error) {
  const auto response = co_await client.send({});
  if (response.has_error()) *error = response.error().code;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a request goes out as given and the response comes back") {
  peer.reply(test::json_response(200, R"({"a":1})"));
  const auto response = send(Request{"POST", "/x?y=1", {{"Accept", "a/b"}}, "hello"});
  REQUIRE(response.has_value());
  CHECK(response->status == 200);
  CHECK(response->body == R"({"a":1})");
  CHECK(response->headers.get("content-type") == "application/json");
  REQUIRE(peer.requests().size() == 1);
  const std::string& sent = peer.requests()[0];
  CHECK(sent.starts_with("POST /x?y=1 HTTP/1.1\r\nHost: " + peer.origin().authority() + "\r\n"));
  CHECK(contains(sent, "\r\nAccept: a/b\r\n"));
  CHECK(contains(sent, "\r\nContent-Length: 5\r\n"));
  CHECK(sent.ends_with("\r\n\r\nhello"));
}

TEST_CASE_FIXTURE(Fixture, "a thousand requests in sequence share one connection") {
  peer.always(test::response(200, "ok"));
  for (int i = 0; i < 1000; ++i) REQUIRE(send().has_value());
  CHECK(peer.connections() == 1);
  CHECK(peer.requests().size() == 1000);
}

TEST_CASE_FIXTURE(Fixture, "a body over 64 KiB is sent whole") {
  peer.always(test::response(200, ""));
  const std::string body(3'000'000, 'x');
  REQUIRE(send(Request{"PUT", "/", {}, body}).has_value());
  CHECK(peer.requests()[0].size() > body.size());
}

TEST_CASE("responses in any framing are understood") {
  struct Case {
    std::string name;
    Script script;
    std::string want;
    int connections;  // after a second request
  };
  const Case cases[] = {
      {"length", test::response(200, "body"), "body", 1},
      {"chunks", test::chunked_head() + test::chunk("bo") + test::chunk("dy") + test::last_chunk(),
       "body", 1},
      {"until close", Script{}.send("HTTP/1.1 200 OK\r\n\r\nbody").close(), "body", 2},
      {"HTTP/1.0", Script{}.send("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody").close(),
       "body", 2},
      {"Connection: close", test::response(200, "body", {{"Connection", "close"}}), "body", 2},
      {"interim responses",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
           test::response(200, "body"),
       "body", 1},
      {"no content", "HTTP/1.1 204 No Content\r\n\r\n", "", 1},
      {"more than asked for", test::response(200, "body") + "HTTP/1.1 200 OK\r\n", "body", 2},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture fresh;
    fresh.peer.reply(c.script);
    fresh.peer.always(test::response(200, ""));
    const auto response = fresh.send();
    REQUIRE(response.has_value());
    CHECK(response->body == c.want);
    fresh.settle();
    REQUIRE(fresh.send().has_value());
    CHECK(fresh.peer.connections() == c.connections);
  }
}

TEST_CASE("what the peer breaks is an error with a code and a sentence") {
  struct Case {
    std::string name;
    Script script;
    net::Limits limits;
    ErrorCode code;
    std::string text;
    bool kept = false;  // the exchange itself was in order
  };
  net::Limits small;
  small.body_bytes = 10'000;
  small.header_bytes = 1'000;
  net::Limits quick;
  quick.header = 60ms;
  net::Limits total;
  total.total = 60ms;
  const std::string big(20'000, 'x');
  const Case cases[] = {
      {"not HTTP", "hello there\r\n\r\n", {}, ErrorCode::protocol, "not valid HTTP"},
      {"body over the limit, stated", test::response(200, big), small, ErrorCode::protocol,
       "the body is larger than allowed"},
      {"body over the limit, chunked",
       test::chunked_head() + test::chunk(big.substr(0, 6000)) + test::chunk(big.substr(0, 6000)),
       small, ErrorCode::protocol, "the body is larger than allowed"},
      {"gzip bomb", test::response(200, test::gzip(big), {{"Content-Encoding", "gzip"}}), small,
       ErrorCode::protocol, "the body is larger than allowed", true},
      {"header over the limit", test::response(200, "", {{"A", big}}), small, ErrorCode::protocol,
       "the header is larger than allowed"},
      {"half a header",
       Script{}.send("HTTP/1.1 200 OK\r\nA: b").close(),
       {},
       ErrorCode::unavailable,
       "before the end"},
      {"half a body",
       Script{}.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").close(),
       {},
       ErrorCode::unavailable,
       "before the end"},
      {"half a chunk",
       Script{}.send(test::chunked_head() + "9\r\nhalf").close(),
       {},
       ErrorCode::unavailable,
       "before the end"},
      {"reset", Script{}.reset(), {}, ErrorCode::unavailable, "waiting for the response"},
      {"hangs up", Script{}.close(), {}, ErrorCode::unavailable, "waiting for the response"},
      {"no header in time", Script{}.stall(), quick, ErrorCode::timeout, "no response within 60ms"},
      {"header trickles",
       Script{}.send("HTTP/1.1 200 OK\r\n").wait(40ms).send("A: b\r\n").wait(40ms).send("\r\n"),
       quick, ErrorCode::timeout, "no response within"},
      {"body stalls", Script{}.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").stall(),
       total, ErrorCode::timeout, "reading the response body"},
      {"switches protocols",
       "HTTP/1.1 101 Switching Protocols\r\n\r\n",
       {},
       ErrorCode::protocol,
       "switched protocols"},
      {"endless interim responses",
       [] {
         std::string many;
         for (int i = 0; i < 50; ++i) many += "HTTP/1.1 102 Processing\r\n\r\n";
         return many;
       }(),
       {},
       ErrorCode::protocol,
       "interim"},
      {"broken gzip",
       test::response(200, "not gzip", {{"Content-Encoding", "gzip"}}),
       {},
       ErrorCode::protocol,
       "gzip",
       true},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture fresh;
    fresh.peer.reply(c.script);
    const auto response = fresh.send({}, c.limits);
    REQUIRE(response.has_error());
    CAPTURE(response.error().text());
    CHECK(response.error().code == c.code);
    CHECK(contains(response.error().message, c.text));
    CHECK(contains(response.error().message, std::to_string(fresh.peer.port())));
    test::run_task(fresh.io, net::sleep(60ms));  // until the peer has noticed
    CHECK(fresh.peer.open_connections() == (c.kept ? 1 : 0));
    CHECK(fresh.peer.connections() == 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "nobody listening is unavailable and names host and port") {
  net::Origin origin;
  {
    ScriptedPeer gone{io.get_executor()};
    origin = gone.origin();
  }
  Client nobody{io.get_executor(), origin, {}};
  const auto response = test::run_task(io, nobody.send({}));
  REQUIRE(response.has_error());
  CHECK(response.error().code == ErrorCode::unavailable);
  CHECK(contains(response.error().message, "cannot connect to " + origin.authority()));
  CHECK(contains(response.error().message, "refused"));
}

TEST_CASE_FIXTURE(Fixture, "a host name is resolved and an unknown one is an error") {
  peer.always(test::response(200, "ok"));
  // The peer listens on IPv4 only: if ::1 comes first it is tried and given up.
  Client local{io.get_executor(), {false, "localhost", peer.port()}, {}};
  CHECK(test::run_task(io, local.send({})).has_value());
  CHECK(contains(peer.requests()[0], "Host: localhost:"));
  Client unknown{io.get_executor(), {false, "no-such-host.invalid", 80}, {}};
  const auto response = test::run_task(io, unknown.send({}, {.connect = 5s}));
  REQUIRE(response.has_error());
  CHECK(contains(response.error().message, "no-such-host.invalid"));
}

TEST_CASE_FIXTURE(Fixture, "the address filter judges resolved addresses") {
  std::vector<std::string> asked;
  Client filtered{
      io.get_executor(), {false, "localhost", peer.port()}, {}, [&](const std::string& address) {
        asked.push_back(address);
        return false;
      }};
  const auto response = test::run_task(io, filtered.send({}));
  REQUIRE(response.has_error());
  CHECK(response.error().code == ErrorCode::forbidden);
  CHECK(contains(response.error().message, "127.0.0.1"));
  CHECK_FALSE(asked.empty());
  CHECK(peer.connections() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a redirect is returned and not followed") {
  peer.reply(test::response(302, "", {{"Location", "http://127.0.0.1:1/"}}));
  const auto response = send();
  REQUIRE(response.has_value());
  CHECK(response->status == 302);
  CHECK(response->headers.get("Location") == "http://127.0.0.1:1/");
  CHECK(peer.requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a gzip body is decoded and its headers are gone") {
  peer.reply(test::response(200, test::gzip("plain"), {{"Content-Encoding", "gzip"}}));
  const auto response = send();
  REQUIRE(response.has_value());
  CHECK(response->body == "plain");
  CHECK(response->headers.get("Content-Encoding").empty());
  CHECK(response->headers.get("Content-Length").empty());
}

TEST_CASE_FIXTURE(Fixture, "HEAD has no body and leaves the connection in order") {
  peer.reply("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
  peer.reply(test::response(200, "next"));
  const auto response = send(Request{"HEAD"});
  REQUIRE(response.has_value());
  CHECK(response->body.empty());
  CHECK(response->headers.get("Content-Length") == "100");
  CHECK(send()->body == "next");
  CHECK(peer.connections() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a kept connection that the peer has closed meanwhile is not used") {
  peer.reply(Script{test::response(200, "one")}.close());
  peer.reply(test::response(200, "two"));
  REQUIRE(send().has_value());
  settle();
  // Also safe for methods that must not be repeated: nothing was sent on the dead one.
  CHECK(send(Request{"POST"})->body == "two");
  CHECK(peer.connections() == 2);
}

TEST_CASE_FIXTURE(Fixture, "a kept connection that dies under the request is replaced once") {
  peer.reply(test::response(200, "one"));
  peer.reply(Script{}.close());  // swallows the second request
  peer.reply(test::response(200, "two"));
  REQUIRE(send().has_value());
  CHECK(send()->body == "two");
  CHECK(peer.connections() == 2);
  CHECK(peer.requests().size() == 3);

  SUBCASE("but a fresh one that dies is an error") {
    peer.reply(Script{}.close());  // on the kept connection
    peer.reply(Script{}.close());  // on its replacement
    const auto response = send();
    REQUIRE(response.has_error());
    CHECK(response.error().code == ErrorCode::unavailable);
    CHECK(peer.connections() == 3);
  }
  SUBCASE("but a POST that may have arrived is not sent twice") {
    peer.reply(Script{}.close());
    const auto response = send(Request{"POST", "/", {}, "x"});
    REQUIRE(response.has_error());
    CHECK(response.error().code == ErrorCode::unavailable);
    CHECK(peer.requests().size() == 4);
  }
  SUBCASE("but not after part of the response") {
    peer.reply(Script{"HTTP/1.1 2"}.close());
    CHECK(send().has_error());
    CHECK(peer.connections() == 2);
  }
}

TEST_CASE_FIXTURE(Fixture, "an early answer to a request that is still being sent is delivered") {
  // The peer answers and closes while most of the body has not been read.
  peer.reply(Script{test::response(413, "too large", {{"Connection", "close"}})}.stall());
  const auto response = send(Request{"PUT", "/", {}, std::string(100'000, 'x')});
  REQUIRE(response.has_value());
  CHECK(response->status == 413);
}

TEST_CASE_FIXTURE(Fixture, "a request that could smuggle a header is refused before connecting") {
  const auto response = send(Request{"GET", "/", {{"A", "b\r\nC: d"}}});
  REQUIRE(response.has_error());
  CHECK(response.error().code == ErrorCode::invalid_argument);
  CHECK(peer.connections() == 0);
}

TEST_CASE_FIXTURE(Fixture, "concurrent requests do not wait for one another") {
  peer.always(Script{}.wait(100ms).send(test::response(200, "ok")));
  int done = 0;
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    boost::asio::co_spawn(io, send_and_count(client, &done), boost::asio::detached);
  }
  while (done < 5 && io.run_one_for(2s) > 0) {
  }
  CHECK(done == 5);
  CHECK(peer.connections() == 5);
  CHECK(std::chrono::steady_clock::now() - started < 400ms);
}

TEST_CASE("cancellation closes the connection wherever the request is") {
  struct Case {
    std::string name;
    Script script;
  };
  const Case cases[] = {
      {"waiting for the header", Script{}.stall()},
      {"in the body", Script{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"}.stall()},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture f;
    f.peer.reply(c.script);
    boost::asio::cancellation_signal signal;
    bool ended = false;
    std::optional<ErrorCode> code;
    const auto done = [&ended](std::exception_ptr) { ended = true; };
    boost::asio::co_spawn(f.io, send_and_note(f.client, &code),
                          boost::asio::bind_cancellation_slot(signal.slot(), done));
    f.settle();
    CHECK(f.peer.open_connections() == 1);
    CHECK_FALSE(ended);
    signal.emit(boost::asio::cancellation_type::terminal);
    f.settle();
    CHECK(ended);
    CHECK(code == ErrorCode::cancelled);
    CHECK(f.peer.open_connections() == 0);
  }
}

TEST_CASE("a client may be destroyed while its request is under way") {
  io_context io;
  ScriptedPeer peer{io.get_executor()};
  peer.reply(Script{}.wait(30ms).send(test::response(200, "ok")));
  auto client = std::make_unique<Client>(io.get_executor(), peer.origin(), Client::TlsSource{});
  auto task = client->send({});
  client.reset();
  CHECK(test::run_task(io, std::move(task))->body == "ok");
}
