// Tokens and TLS files that change while we run.
#include <doctest/doctest.h>

#include "kube/credentials.hpp"
#include "test/support/certificates.hpp"
#include "test/support/folder.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

// A token file that can be changed and broken, and says how often it was read.
struct TokenFile {
  ManualClock clock{TimePoint{}};
  Result<std::string> content = std::string("one");
  int reads = 0;
  TokenSource source{"", "/token", clock, [this](const std::string& path) {
                       CHECK(path == "/token");
                       ++reads;
                       return content;
                     }};
};

}  // namespace

TEST_CASE_FIXTURE(TokenFile, "token: trimmed, and used for 50 seconds without reading again") {
  content = std::string(" one\n");
  CHECK(source.current().value() == "one");
  content = std::string("two");
  clock.advance(49'999ms);
  CHECK(source.current().value() == "one");
  CHECK(reads == 1);
  clock.advance(1ms);
  CHECK(source.current().value() == "two");
  CHECK(reads == 2);
}

TEST_CASE_FIXTURE(TokenFile, "token: never readable is an error, and so is an empty file") {
  content = fail(ErrorCode::io, "gone");
  CHECK(source.current().error().code == ErrorCode::io);
  content = std::string(" \n");
  CHECK(source.current().error().message.find("is empty") != std::string::npos);
}

TEST_CASE_FIXTURE(TokenFile, "token: when reading fails later the old one stays in use") {
  CHECK(source.current().value() == "one");
  for (const auto& broken :
       {Result<std::string>{fail(ErrorCode::io, "gone")}, Result<std::string>{std::string{}}}) {
    content = broken;
    clock.advance(2min);
    CHECK(source.current().value() == "one");
  }
  content = std::string("two");
  clock.advance(5s);
  CHECK(source.current().value() == "one");  // not read again for every single request
  clock.advance(5s);
  CHECK(source.current().value() == "two");
}

TEST_CASE_FIXTURE(TokenFile, "token: a 401 drops what was read before the request started") {
  CHECK(source.current().value() == "one");
  clock.advance(1s);
  content = std::string("two");
  source.rejected(clock.monotonic());
  CHECK(source.current().value() == "two");
  SUBCASE("but not what was read since") {
    content = std::string("three");
    source.rejected(clock.monotonic() - 1s);
    CHECK(source.current().value() == "two");
  }
  SUBCASE("and then a file that cannot be read is an error") {
    content = fail(ErrorCode::io, "gone");
    source.rejected(clock.monotonic());
    CHECK(source.current().error().code == ErrorCode::io);
  }
}

TEST_CASE("token: a fixed one is never read, and fills in for a file that cannot be read") {
  ManualClock clock{TimePoint{}};
  const ReadFile broken = [](const std::string&) -> Result<std::string> {
    return fail(ErrorCode::io, "gone");
  };
  CHECK(TokenSource("fixed", "", clock, broken).current().value() == "fixed");
  CHECK(TokenSource("", "", clock, broken).current().value().empty());
  CHECK(TokenSource("fixed", "/file", clock, broken).current().value() == "fixed");
}

namespace {

struct TlsFiles {
  TlsFiles() {
    first = authority.issue();
    second = authority.issue();
    folder.write("ca", authority.ca_pem());
    folder.write("crt", first.certificate_pem);
    folder.write("key", first.private_key_pem);
    config.certificate_authority.file = folder.path("ca");
    config.client_certificate.file = folder.path("crt");
    config.client_key.file = folder.path("key");
    config.tls_server_name = "api";
  }
  test::Folder folder;
  test::Authority authority, other{"another authority"};
  test::Identity first, second;
  Config config;
  ManualClock clock{TimePoint{}};
};

}  // namespace

TEST_CASE_FIXTURE(TlsFiles, "TLS: files are read once, and again when they changed") {
  TlsSource source(config, clock);
  REQUIRE(source.load().has_value());
  CHECK(source.current().ca_pem == authority.ca_pem());
  CHECK(source.current().certificate_pem == first.certificate_pem);
  CHECK(source.current().server_name == "api");
  folder.write("ca", other.ca_pem());
  CHECK(source.current().ca_pem == other.ca_pem());
}

TEST_CASE_FIXTURE(TlsFiles, "TLS: a changed file that is not valid is ignored") {
  TlsSource source(config, clock);
  REQUIRE(source.load().has_value());
  const std::string good = authority.ca_pem();
  for (const std::string& bad :
       {std::string{}, std::string{"rubbish"}, good.substr(0, good.size() / 2),
        good + "-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n"}) {
    CAPTURE(bad);
    folder.write("ca", bad);
    CHECK(source.current().ca_pem == good);
  }
  folder.remove("ca");
  CHECK(source.current().ca_pem == good);
  folder.write("ca", other.ca_pem());
  CHECK(source.current().ca_pem == other.ca_pem());
}

TEST_CASE_FIXTURE(TlsFiles, "TLS: a certificate counts only together with its own key") {
  TlsSource source(config, clock);
  REQUIRE(source.load().has_value());
  folder.write("crt", second.certificate_pem);
  CHECK(source.current().certificate_pem == first.certificate_pem);
  folder.write("key", second.private_key_pem);
  CHECK(source.current().certificate_pem == second.certificate_pem);
  CHECK(source.current().private_key_pem == second.private_key_pem);
}

TEST_CASE_FIXTURE(TlsFiles, "TLS: files that are wrong from the start are an error") {
  SUBCASE("missing") {
    folder.remove("ca");
    CHECK(TlsSource(config, clock).load().error().code == ErrorCode::io);
  }
  SUBCASE("not PEM") {
    folder.write("ca", "rubbish");
    const auto loaded = TlsSource(config, clock).load();
    CHECK(loaded.error().code == ErrorCode::parse);
    CHECK(loaded.error().message.find(folder.path("ca")) != std::string::npos);
  }
  SUBCASE("another key") {
    folder.write("key", second.private_key_pem);
    CHECK(TlsSource(config, clock).load().error().code == ErrorCode::parse);
  }
}

TEST_CASE("TLS: inline texts need no file, and none at all is fine") {
  ManualClock clock{TimePoint{}};
  const test::Authority authority;
  Config config;
  config.certificate_authority.text = authority.ca_pem();
  TlsSource source(config, clock);
  REQUIRE(source.load().has_value());
  CHECK(source.current().ca_pem == authority.ca_pem());
  // Named: GCC 12 at -O2 takes the members of a temporary for uninitialized.
  const Config nothing;
  CHECK(TlsSource(nothing, clock).load().has_value());
}
