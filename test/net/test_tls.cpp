// Client and server over TLS: who is trusted, who is refused, and with which words.
#include <algorithm>

#include <doctest/doctest.h>

#include "net/client.hpp"
#include "net/run.hpp"
#include "net/server.hpp"
#include "test/net/raw_client.hpp"
#include "test/support/certificates.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

using namespace kwatt;
using namespace std::chrono_literals;
using boost::asio::io_context;
using net::Client;
using net::Request;
using net::Response;
using net::TlsConfig;
using test::Authority;

namespace {

net::Task<Response> greet(Request request) {
  co_return Response{200, {}, "hello " + request.peer + " " + std::to_string(request.body.size())};
}

TlsConfig as_server(const test::Identity& identity, const std::string& client_ca = {}) {
  return {.ca_pem = client_ca,
          .certificate_pem = identity.certificate_pem,
          .private_key_pem = identity.private_key_pem};
}

struct Fixture {
  io_context io;
  Authority authority;
  TlsConfig server_tls = as_server(authority.issue());
  TlsConfig client_tls{.ca_pem = authority.ca_pem()};
  std::optional<net::Server> server;

  std::uint16_t start() {
    const net::ServerOptions options{.address = "127.0.0.1", .tls = true};
    server.emplace(io.get_executor(), options, greet, [this] { return server_tls; });
    const auto started = server->start();
    REQUIRE_MESSAGE(started.has_value(), started.error().text());
    return server->port();
  }
  // The server closes all connections and starts again on the same port.
  void restart() {
    const auto port = server->port();
    test::run_task(io, server->stop(1s));
    const net::ServerOptions options{.address = "127.0.0.1", .port = port, .tls = true};
    server.emplace(io.get_executor(), options, greet, [this] { return server_tls; });
    REQUIRE(server->start().has_value());
  }
  Client client(std::uint16_t port, const std::string& host = "127.0.0.1") {
    return Client{io.get_executor(), net::Origin{true, host, port}, [this] { return client_tls; }};
  }
  Result<Response> send(Client& target, Request request = {}) {
    return test::run_task(io, target.send(std::move(request), {.connect = 3s}));
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "requests pass over TLS, by address and by name, in any size") {
  const auto port = start();
  for (const auto* host : {"127.0.0.1", "localhost"}) {
    INFO(host);
    Client c = client(port, host);
    const auto response = send(c, Request{"POST", "/", {}, std::string(2'000'000, 'x')});
    REQUIRE_MESSAGE(response.has_value(), response.error().text());
    CHECK(response->body == "hello 127.0.0.1 2000000");
    for (int i = 0; i < 20; ++i) CHECK(send(c).has_value());
  }
}

TEST_CASE("a server that is not who it should be is refused in OpenSSL's words") {
  struct Case {
    std::string name;
    test::CertificateRequest certificate;
    bool known_authority = true;
    std::string server_name = {};
    std::string text;
  };
  const Case cases[] = {
      {"unknown authority", {}, false, "", "unable to get local issuer certificate"},
      {"another host name", {.names = {"DNS:other.example"}}, true, "", "IP address mismatch"},
      {"another name asked for", {}, true, "kubernetes.default.svc", "hostname mismatch"},
      {"partial wildcard",
       {.names = {"DNS:k*.default"}},
       true,
       "kube.default",
       "hostname mismatch"},
      {"no name but the common name",
       {.common_name = "localhost", .names = {"DNS:x"}},
       true,
       "localhost",
       "hostname mismatch"},
      {"expired", {.not_before = -48h, .not_after = -1h}, true, "", "certificate has expired"},
      {"not yet valid", {.not_before = 1h, .not_after = 2h}, true, "", "not yet valid"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture f;
    f.server_tls = as_server(f.authority.issue(c.certificate));
    if (!c.known_authority) f.client_tls.ca_pem = Authority{}.ca_pem();
    f.client_tls.server_name = c.server_name;
    Client client = f.client(f.start());
    const auto response = f.send(client);
    REQUIRE(response.has_error());
    CAPTURE(response.error().text());
    CHECK(response.error().code == ErrorCode::forbidden);
    CHECK(contains(response.error().message, c.text));
    CHECK(contains(response.error().message, "cannot connect to 127.0.0.1:"));
  }
}

TEST_CASE_FIXTURE(Fixture, "without a CA the system's roots count, which do not know ours") {
  client_tls.ca_pem.clear();
  Client c = client(start());
  const auto response = send(c);
  REQUIRE(response.has_error());
  CHECK(response.error().code == ErrorCode::forbidden);
}

TEST_CASE_FIXTURE(Fixture, "another name may stand for the host") {
  server_tls = as_server(authority.issue({.names = {"DNS:kubernetes.default.svc"}}));
  client_tls.server_name = "kubernetes.default.svc";
  Client c = client(start());
  CHECK(send(c).has_value());
}

TEST_CASE_FIXTURE(Fixture, "a pinned certificate is trusted without its authority") {
  client_tls.ca_pem = server_tls.certificate_pem;
  Client c = client(start());
  const auto response = send(c);
  CHECK_MESSAGE(response.has_value(), response.error().text());
}

TEST_CASE_FIXTURE(Fixture, "a server with a CA demands a certificate issued by it") {
  const Authority clients{"client authority"};
  server_tls.ca_pem = clients.ca_pem();
  Client c = client(start());

  SUBCASE("the right one passes") {
    const auto identity = clients.issue({.common_name = "agent", .names = {}});
    client_tls.certificate_pem = identity.certificate_pem;
    client_tls.private_key_pem = identity.private_key_pem;
    const auto response = send(c);
    CHECK_MESSAGE(response.has_value(), response.error().text());
  }
  SUBCASE("none is refused") {
    const auto response = send(c);
    REQUIRE(response.has_error());
    CAPTURE(response.error().text());
    CHECK(response.error().code == ErrorCode::forbidden);
    CHECK(contains(response.error().message, "certificate required"));
  }
  SUBCASE("one of another authority is refused") {
    const auto identity = authority.issue();
    client_tls.certificate_pem = identity.certificate_pem;
    client_tls.private_key_pem = identity.private_key_pem;
    const auto response = send(c);
    REQUIRE(response.has_error());
    CAPTURE(response.error().text());
    CHECK(response.error().code == ErrorCode::forbidden);
  }
}

TEST_CASE_FIXTURE(Fixture, "a rotated server certificate counts at the next connection") {
  const auto port = start();
  Client before = client(port);
  REQUIRE(send(before).has_value());

  const Authority next{"next authority"};
  server_tls = as_server(next.issue());
  CHECK(send(before).has_value());  // its connection lives on
  Client distrusting = client(port);
  CHECK(send(distrusting).has_error());
  client_tls.ca_pem = next.ca_pem();
  Client after = client(port);
  CHECK(send(after).has_value());
}

TEST_CASE_FIXTURE(Fixture, "a broken new server certificate is ignored") {
  const auto port = start();
  server_tls.certificate_pem = "half written";
  Client c = client(port);
  CHECK(send(c).has_value());
}

TEST_CASE_FIXTURE(Fixture, "a rotated CA drops the connections made with the old one") {
  const auto port = start();
  Client c = client(port);
  REQUIRE(send(c).has_value());
  // Two requests at once, so that one of them needs a new connection and asks for the TLS files.
  client_tls.ca_pem = Authority{"stranger"}.ca_pem();
  std::vector<bool> passed;
  struct Run {
    static net::Task<void> one(Client& target, std::vector<bool>* out) {
      const auto response = co_await target.send(Request{});
      out->push_back(response.has_value());
    }
  };
  boost::asio::co_spawn(io, Run::one(c, &passed), [](std::exception_ptr) {});
  boost::asio::co_spawn(io, Run::one(c, &passed), [](std::exception_ptr) {});
  while (passed.size() < 2 && io.run_one_for(3s) > 0) {
  }
  CHECK(std::count(passed.begin(), passed.end(), true) == 1);
  // And the one that was busy meanwhile is not kept.
  CHECK(send(c).has_error());
}

TEST_CASE_FIXTURE(Fixture, "a broken new CA is ignored by a client that has a good one") {
  const auto port = start();
  Client c = client(port);
  REQUIRE(send(c).has_value());
  client_tls.ca_pem = "half written";
  restart();
  CHECK(send(c).has_value());
  client_tls.ca_pem = Authority{"stranger"}.ca_pem();
  restart();
  CHECK(send(c).has_error());
}

TEST_CASE("unusable TLS settings are named") {
  const Authority authority;
  const auto good = authority.issue();
  const auto other = authority.issue();
  struct Case {
    std::string name;
    TlsConfig config;
    std::string text;
  };
  const std::string &certificate = good.certificate_pem, &key = good.private_key_pem;
  const Case cases[] = {
      {"no certificate in the CA text", {.ca_pem = "nothing here"}, "no certificate"},
      {"a broken CA",
       {.ca_pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
       "CA"},
      {"certificate without key", {.certificate_pem = certificate}, "together"},
      {"key without certificate", {.private_key_pem = key}, "together"},
      {"a key that is none",
       {.certificate_pem = certificate, .private_key_pem = "x"},
       "private key"},
      {"the key of another",
       {.certificate_pem = certificate, .private_key_pem = other.private_key_pem},
       "does not belong"},
      {"a name that cannot be",
       {.ca_pem = authority.ca_pem(), .server_name = std::string(300, 'a')},
       "not a name"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Fixture f;
    const auto port = f.start();
    f.client_tls = c.config;
    Client client = f.client(port);
    const auto response = f.send(client);
    REQUIRE(response.has_error());
    CAPTURE(response.error().text());
    CHECK(response.error().code == ErrorCode::invalid_argument);
    CHECK(contains(response.error().message, c.text));
    CHECK_FALSE(contains(response.error().message, "PRIVATE KEY"));
  }

  io_context io;
  net::Server server{io.get_executor(), {.tls = true}, greet, [] { return TlsConfig{}; }};
  const auto started = server.start();
  REQUIRE(started.has_error());
  CHECK(started.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("TLS and plain text do not meet") {
  Fixture f;
  const auto port = f.start();
  Client plain{f.io.get_executor(), net::Origin{false, "127.0.0.1", port}, {}};
  CHECK(f.send(plain).has_error());

  test::ScriptedPeer peer{f.io.get_executor()};
  peer.hang_up_on_connect(true);
  Client tls = f.client(peer.port());
  const auto hung_up = f.send(tls);
  REQUIRE(hung_up.has_error());
  CHECK(hung_up.error().code == ErrorCode::unavailable);
}

TEST_CASE("a handshake that never ends is given up, on both sides") {
  Fixture f;
  // A peer that reads and never says anything.
  test::ScriptedPeer silent{f.io.get_executor()};
  Client client = f.client(silent.port());
  const auto response = test::run_task(f.io, client.send(Request{}, {.connect = 60ms}));
  REQUIRE(response.has_error());
  CHECK(response.error().code == ErrorCode::timeout);

  net::ServerOptions options{.address = "127.0.0.1", .tls = true};
  options.limits.connect = 60ms;
  net::Server server{f.io.get_executor(), options, greet, [&] { return f.server_tls; }};
  REQUIRE(server.start().has_value());
  test::RawClient silent_client{f.io, server.port()};
  CHECK(silent_client.receive({}, 1s).empty());
  CHECK(silent_client.closed());
}
