// Management controllers that break the rules. Each peer here is a fake of ours that plays back one
// misbehaviour seen in the field; whatever it does, the driver answers in time, with a typed error,
// and sends nothing that was not asked for.
#include <doctest/doctest.h>

#include "test/hardware/fake_bmc.hpp"
#include "test/hardware/print_result.hpp"
#include "test/support/certificates.hpp"
#include "test/support/scripted_peer.hpp"

namespace kwatt::hardware {
namespace {

TEST_SUITE_BEGIN("redfish");

using std::chrono::steady_clock;

// A driver without credentials, so that the first request is for the system itself.
struct FakePeer {
  boost::asio::io_context io;
  test::ScriptedPeer peer{io.get_executor()};
  std::unique_ptr<PowerDriver> driver;
  Duration took{0};

  FakePeer() {
    DriverConfig config;
    config.address = "redfish+http://127.0.0.1:" + std::to_string(peer.port()) + "/redfish/v1/S/1";
    config.timeout = std::chrono::milliseconds{700};
    driver = *make_driver(io.get_executor(), std::move(config));
  }
  Error state_error() {
    std::optional<Result<MachinePower>> answer;
    const auto started = steady_clock::now();
    boost::asio::co_spawn(io, driver->state(), [&](std::exception_ptr, auto result) {
      answer.emplace(std::move(result));
    });
    while (!answer && io.run_one_for(std::chrono::seconds{20}) > 0) {
    }
    took = std::chrono::duration_cast<Duration>(steady_clock::now() - started);
    REQUIRE(answer);
    REQUIRE_FALSE(answer->has_value());
    return answer->error();
  }
};

TEST_CASE("fake BMCs that break the rules: each is told apart, in time") {
  struct Case {
    const char* name;
    test::Script script;
    ErrorCode code;
  };
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
  test::Script drip{head + "Content-Length: 100\r\n\r\n"};
  for (int i = 0; i < 50; ++i) drip.send("{").wait(Duration{100});
  const Case cases[] = {
      {"fake BMC that announces a body of 1 GB",
       test::Script{}.send(head + "Content-Length: 1000000000\r\n\r\n{").stall(),
       ErrorCode::protocol},
      {"fake BMC that sends one chunk of 1 GB",
       test::Script{}.send(test::chunked_head() + "3b9aca00\r\n{").stall(), ErrorCode::protocol},
      {"fake BMC that drips bytes", drip, ErrorCode::timeout},
      {"fake BMC that says nothing", test::Script{}.stall(), ErrorCode::timeout},
      {"fake BMC that closes", test::Script{}.close(), ErrorCode::unavailable},
      {"fake BMC that resets", test::Script{}.reset(), ErrorCode::unavailable},
      {"fake BMC that breaks off",
       test::Script{}.send(head + "Content-Length: 100\r\n\r\n{\"Power").close(),
       ErrorCode::unavailable},
      {"fake BMC that speaks something else", "SSH-2.0-OpenSSH_9.2\r\n", ErrorCode::protocol},
      {"fake BMC that redirects",
       test::response(302, "", {{"Location", "http://169.254.169.254/latest"}}),
       ErrorCode::protocol},
      {"fake BMC that shows its login page", test::response(200, "<html>Login</html>"),
       ErrorCode::protocol},
      {"fake BMC with a wrong answer", test::json_response(200, "{\"PowerState\":\"On\"},"),
       ErrorCode::protocol},
      {"fake BMC that failed inside", test::response(500, "oops"), ErrorCode::protocol},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    FakePeer fake;
    fake.peer.always(c.script);
    const Error error = fake.state_error();
    CHECK(error.code == c.code);
    CHECK(fake.took < std::chrono::seconds{5});
    for (const std::string& line : fake.peer.request_lines()) {
      CHECK(line == "GET /redfish/v1/S/1 HTTP/1.1");
    }
  }
}

// Over TLS, with a certificate that nobody we trust has signed.
TEST_CASE("fake BMC with a wrong certificate: no request is sent") {
  const test::Authority ours{"ours"}, theirs{"theirs"};
  boost::asio::io_context io;
  int asked = 0;
  net::ServerOptions options;
  options.address = "127.0.0.1";
  options.tls = true;
  net::TlsConfig tls;
  const test::Identity leaf = theirs.issue();
  tls.certificate_pem = leaf.certificate_pem;
  tls.private_key_pem = leaf.private_key_pem;
  net::Server server(
      io.get_executor(), options,
      [&](net::Request) -> net::Task<net::Response> {
        ++asked;
        co_return net::Response(200, {}, R"({"PowerState":"On"})");
      },
      [tls] { return tls; });
  REQUIRE(server.start());
  for (const bool trusted : {false, true}) {
    CAPTURE(trusted);
    DriverConfig config;
    config.address =
        "redfish+https://127.0.0.1:" + std::to_string(server.port()) + "/redfish/v1/Systems/1";
    config.ca_pem = trusted ? theirs.ca_pem() : ours.ca_pem();
    config.timeout = std::chrono::seconds{5};
    auto driver = make_driver(io.get_executor(), std::move(config));
    REQUIRE(driver);
    std::optional<Result<MachinePower>> answer;
    boost::asio::co_spawn(io, (*driver)->state(), [&](std::exception_ptr, auto result) {
      answer.emplace(std::move(result));
    });
    while (!answer && io.run_one_for(std::chrono::seconds{20}) > 0) {
    }
    REQUIRE(answer);
    if (trusted) {
      CHECK(answer->has_value());
      continue;
    }
    REQUIRE_FALSE(answer->has_value());
    CHECK(answer->error().code == ErrorCode::forbidden);
    CHECK(asked == 0);
  }
  CHECK(asked == 1);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::hardware
