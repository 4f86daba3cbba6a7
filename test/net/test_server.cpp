// The server: what it serves, what it refuses, whom it drops, and how it stops.
#include <stdexcept>

#include <doctest/doctest.h>

#include "net/client.hpp"
#include "net/run.hpp"
#include "net/server.hpp"
#include "test/net/raw_client.hpp"
#include "test/support/run_task.hpp"

using namespace kwatt;
using namespace std::chrono_literals;
using boost::asio::io_context;
using net::Client;
using net::Request;
using net::Response;
using net::Server;
using test::RawClient;

namespace {

struct Fixture {
  io_context io;
  net::ServerOptions options{.address = "127.0.0.1"};
  std::optional<Server> server;
  std::vector<Request> seen;
  bool slow_done = false;
  int slow_begun = 0;

  Fixture() {
    options.limits.header = 200ms;
    options.limits.total = 200ms;
    options.limits.header_bytes = 1000;
    options.limits.body_bytes = 10'000;
    options.keep_alive = 400ms;
  }

  std::uint16_t start() {
    server.emplace(io.get_executor(), options,
                   [this](Request request) { return answer(this, std::move(request)); });
    const auto started = server->start();
    REQUIRE_MESSAGE(started.has_value(), started.error().text());
    return server->port();
  }

  static net::Task<Response> answer(Fixture* self, Request request) {
    self->seen.push_back(request);
    if (request.target == "/throw") throw std::runtime_error{"secret detail"};
    if (request.target == "/bad") co_return Response{200, {{"A", "b\r\nC: d"}}, "x"};
    if (request.target == "/close") co_return Response{200, {{"Connection", "close"}}, "bye"};
    if (request.target == "/big") co_return Response{200, {}, std::string(30'000'000, 'x')};
    if (request.target == "/slow") {
      ++self->slow_begun;
      co_await net::sleep(Duration{150});
      self->slow_done = true;
      co_return Response{200, {}, "slow"};
    }
    if (request.target == "/hang") {
      ++self->slow_begun;
      co_await net::sleep(Duration{60'000});
      self->slow_done = true;
    }
    co_return Response{200, {{"X-Method", request.method}}, "you sent: " + request.body};
  }

  Client client() { return Client{io.get_executor(), {false, "127.0.0.1", server->port()}, {}}; }
  Result<Response> send(Client& target, Request request) {
    return test::run_task(io, target.send(std::move(request)));
  }
  void pause(Duration duration) { test::run_task(io, net::sleep(duration)); }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a handler gets the request and its peer, and answers") {
  start();
  Client c = client();
  const auto response = send(c, Request{"POST", "/a?b=c", {{"X-Y", "z"}}, "hello"});
  REQUIRE(response.has_value());
  CHECK(response->status == 200);
  CHECK(response->body == "you sent: hello");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].method == "POST");
  CHECK(seen[0].target == "/a?b=c");
  CHECK(seen[0].headers.get("x-y") == "z");
  CHECK(seen[0].peer == "127.0.0.1");
}

TEST_CASE_FIXTURE(Fixture, "HEAD is served like GET, without the body") {
  const auto port = start();
  RawClient raw{io, port};
  raw.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get);
  const auto text = raw.receive("you sent: ");
  CHECK(seen[0].method == "GET");
  CHECK(count_of(text, "HTTP/1.1 200 OK") == 2);
  CHECK(count_of(text, "Content-Length: 10") == 2);
  CHECK(count_of(text, "you sent: ") == 1);
}

TEST_CASE_FIXTURE(Fixture, "requests sent at once are answered in order on one connection") {
  RawClient raw{io, start()};
  raw.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  raw.send("GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto text = raw.receive();
  CHECK(count_of(text, "HTTP/1.1 200 OK") == 3);
  CHECK(count_of(text, "Connection: close") == 1);
  CHECK(raw.closed());
  REQUIRE(seen.size() == 3);
  CHECK(seen[2].target == "/3");
}

TEST_CASE("a request that is not in order is refused and the connection closed") {
  struct Case {
    std::string name;
    std::string bytes;
    std::string status;
  };
  const Case cases[] = {
      {"not HTTP", "\x16\x03\x01\x02 hello\r\n\r\n", "400"},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"header too large",
       "GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(2'000, 'x') + "\r\n\r\n", "431"},
      {"target too large", "GET /" + std::string(2'000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n",
       "431"},
      {"body too large, stated", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10001\r\n\r\n",
       "413"},
      {"body too large, sent",
       "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n" + std::string(500'000, 'x'),
       "413"},
      {"body too large, chunked",
       "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n" +
           std::string(20'000, 'x') + "\r\n0\r\n\r\n",
       "413"},
      {"unknown expectation", "PUT / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", "417"},
      {"length and chunks",
       "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
       "400"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture f;
    RawClient raw{f.io, f.start()};
    raw.send(c.bytes);
    raw.finish_sending();
    const auto text = raw.receive();
    CAPTURE(text);
    CHECK(text.starts_with("HTTP/1.1 " + c.status));
    CHECK(contains(text, "Connection: close"));
    CHECK(raw.closed());
    CHECK(f.seen.empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "a client that waits for 100-continue is told to go on") {
  RawClient raw{io, start()};
  raw.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  CHECK(raw.receive("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  raw.send("hi");
  CHECK(contains(raw.receive("you sent: hi"), "HTTP/1.1 200 OK"));

  RawClient too_much{io, server->port()};
  too_much.send(
      "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\nExpect: 100-continue\r\n\r\n");
  CHECK(too_much.receive("\r\n").starts_with("HTTP/1.1 413"));
}

TEST_CASE_FIXTURE(Fixture, "slow clients are dropped, with 408 once they have begun") {
  struct Case {
    std::string name;
    std::string bytes;
    std::string want;
  };
  const Case cases[] = {
      {"says nothing", "", ""},
      {"half a header", "GET / HTTP/1.1\r\nHo", "HTTP/1.1 408"},
      {"half a body", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 408"},
  };
  start();
  for (const Case& c : cases) {
    INFO(c.name);
    RawClient raw{io, server->port()};
    const auto started = std::chrono::steady_clock::now();
    raw.send(c.bytes);
    const auto text = raw.receive("408", 1s);
    CHECK(text.starts_with(c.want));
    CHECK(std::chrono::steady_clock::now() - started < 900ms);
    CHECK((raw.closed() || !c.want.empty()));
  }
  CHECK(seen.empty());
}

TEST_CASE_FIXTURE(Fixture, "a header that trickles in does not extend its time") {
  RawClient raw{io, start()};
  const auto started = std::chrono::steady_clock::now();
  std::string text;
  raw.send("GET / HTTP/1.1\r\nHost: a\r\n");
  for (int i = 0; i < 20 && text.empty(); ++i) {
    raw.send("A: b\r\n");
    text = raw.receive("HTTP", 40ms);
  }
  CHECK(text.starts_with("HTTP/1.1 408"));
  CHECK(std::chrono::steady_clock::now() - started < 600ms);
}

TEST_CASE_FIXTURE(Fixture, "a client that does not read its answer is dropped") {
  RawClient raw{io, start()};
  raw.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
  pause(500ms);  // the sockets' buffers are full by now, the write limit over
  const auto text = raw.receive();
  CHECK(raw.closed());
  CHECK(text.size() < 30'000'000);
}

TEST_CASE_FIXTURE(Fixture, "a kept connection is closed after its idle time, not before") {
  RawClient raw{io, start()};
  raw.send(get);
  CHECK(contains(raw.receive("you sent: "), "200 OK"));
  pause(250ms);  // longer than a header may take
  raw.send(get);
  CHECK(contains(raw.receive("you sent: "), "200 OK"));
  CHECK(raw.receive({}, 1s).empty());
  CHECK(raw.closed());
}

TEST_CASE_FIXTURE(Fixture, "HTTP/1.0 is answered and closed, unless it asks to be kept") {
  RawClient raw{io, start()};
  raw.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(contains(raw.receive("you sent: "), "Connection: keep-alive"));
  raw.send("GET / HTTP/1.0\r\n\r\n");
  CHECK(contains(raw.receive(), "200 OK"));
  CHECK(raw.closed());
}

TEST_CASE_FIXTURE(Fixture, "an exception in a handler becomes 500 without its text") {
  start();
  Client c = client();
  for (const auto* target : {"/throw", "/bad"}) {
    const auto response = send(c, Request{"GET", target});
    REQUIRE(response.has_value());
    CHECK(response->status == 500);
    CHECK_FALSE(contains(response->body, "secret"));
    CHECK(response->headers.get("C").empty());
  }
  CHECK(send(c, Request{})->status == 200);  // the server lives on
}

TEST_CASE_FIXTURE(Fixture, "a handler can end its connection") {
  RawClient raw{io, start()};
  raw.send("GET /close HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto text = raw.receive();
  CHECK(count_of(text, "Connection: close") == 1);
  CHECK(raw.closed());
}

TEST_CASE_FIXTURE(Fixture, "over the connection limit the longest idle one makes room") {
  options.max_connections = 2;
  options.keep_alive = 5s;
  start();
  RawClient first{io, server->port()};
  first.send(get);
  CHECK(contains(first.receive("you sent: "), "200 OK"));
  RawClient second{io, server->port()};
  second.send(get);
  CHECK(contains(second.receive("you sent: "), "200 OK"));
  RawClient third{io, server->port()};
  third.send(get);
  CHECK(contains(third.receive("you sent: "), "200 OK"));
  first.receive({}, 50ms);
  second.receive({}, 50ms);
  CHECK(first.closed());
  CHECK_FALSE(second.closed());
}

TEST_CASE_FIXTURE(Fixture, "over the connection limit a new one is closed when all are busy") {
  options.max_connections = 1;
  start();
  RawClient busy{io, server->port()};
  busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  pause(20ms);
  RawClient refused{io, server->port()};
  refused.send(get);
  CHECK(refused.receive().empty());
  CHECK(refused.closed());
  CHECK(contains(busy.receive("slow"), "200 OK"));
}

TEST_CASE_FIXTURE(Fixture, "stopping lets running requests finish and closes the idle at once") {
  start();
  RawClient idle{io, server->port()};
  idle.send(get);
  idle.receive("you sent: ");
  RawClient busy{io, server->port()};
  busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  pause(20ms);
  const auto started = std::chrono::steady_clock::now();
  test::run_task(io, server->stop(5s));
  CHECK(std::chrono::steady_clock::now() - started < 1s);
  CHECK(slow_done);
  const auto text = busy.receive();
  CHECK(contains(text, "200 OK"));
  CHECK(contains(text, "Connection: close"));
  idle.receive();
  CHECK(idle.closed());
  CHECK_THROWS(RawClient(io, server->port()));
}

TEST_CASE_FIXTURE(Fixture, "stopping cancels what does not finish in the grace period") {
  start();
  RawClient busy{io, server->port()};
  busy.send("GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
  pause(20ms);
  REQUIRE(slow_begun == 1);
  const auto started = std::chrono::steady_clock::now();
  test::run_task(io, server->stop(100ms));
  const auto took = std::chrono::steady_clock::now() - started;
  CHECK(took >= 100ms);
  CHECK(took < 900ms);
  CHECK_FALSE(slow_done);
  CHECK(busy.receive().empty());
  CHECK(busy.closed());
}

TEST_CASE_FIXTURE(Fixture, "an address in use is an error that names it") {
  const auto port = start();
  Server second{io.get_executor(),
                {.address = "127.0.0.1", .port = port},
                [](Request) -> net::Task<Response> { co_return Response{}; }};
  const auto started = second.start();
  REQUIRE(started.has_error());
  CHECK(started.error().code == ErrorCode::io);
  CHECK(contains(started.error().message, "127.0.0.1:" + std::to_string(port)));
  Server nowhere{io.get_executor(), {.address = "not-an-address"}, {}};
  CHECK(nowhere.start().error().code == ErrorCode::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "the server listens on IPv6 as well") {
  options.address = "::1";
  start();
  Client c{io.get_executor(), {false, "::1", server->port()}, {}};
  REQUIRE(send(c, Request{}).has_value());
  CHECK(seen[0].headers.get("Host").starts_with("[::1]:"));
  CHECK(seen[0].peer == "::1");
}
