#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "hardware/wake_lan.hpp"
#include "hardware/wake_sender.hpp"
#include "test/hardware/print_result.hpp"

TEST_SUITE_BEGIN("wol");

namespace kwatt::hardware {
namespace {

const MacAddress kMac{{0x52, 0x54, 0x00, 0x12, 0x34, 0xab}};
const TimePoint kTime = *parse_rfc3339("2026-11-20T12:00:00Z");

TEST_CASE("wol: an address is six pairs of digits of one network card") {
  for (const char* good : {"52:54:00:12:34:ab", "52-54-00-12-34-AB"}) {
    CAPTURE(good);
    const auto mac = parse_mac(good);
    REQUIRE(mac);
    CHECK(*mac == kMac);
    CHECK(to_string(*mac) == "52:54:00:12:34:ab");
  }
  for (const char* bad :
       {"", "52:54:00:12:34", "52:54:00:12:34:ab:cd", "52:54:00:12:34:ag", "52:54-00:12:34:ab",
        "525400-1234ab", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01",
        "5 :54:00:12:34:ab", "-2:54:00:12:34:ab"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_mac(bad));
  }
}

TEST_CASE("wol: the scheme stands with or without slashes") {
  CHECK(*parse_wake_address("wol:52:54:00:12:34:ab") == kMac);
  CHECK(*parse_wake_address("wol://52-54-00-12-34-ab") == kMac);
  CHECK_FALSE(parse_wake_address("wol://52:54:00:12:34:ab/"));
  CHECK_FALSE(parse_wake_address("lab://52:54:00:12:34:ab"));
}

TEST_CASE("wol: the packet is six times 0xff and sixteen times the address") {
  const auto packet = magic_packet(kMac);
  CHECK(packet.size() == 102);
  for (std::size_t i = 0; i < 6; ++i) CHECK(packet[i] == 0xff);
  for (std::size_t i = 6; i < 102; ++i) CHECK(packet[i] == kMac.bytes[(i - 6) % 6]);
}

TEST_CASE("wol: one note is an object, several are a list, and both come back") {
  const WakeNote first{"op-1/2", "node1", kMac, kTime}, second{"op-2/1", "node2", kMac, kTime};
  CHECK(
      format_wake_notes({first}) ==
      R"({"id":"op-1/2","mac":"52:54:00:12:34:ab","node":"node1","time":"2026-11-20T12:00:00Z"})");
  const std::vector<std::vector<WakeNote>> lists{{}, {first}, {first, second}};
  for (const std::vector<WakeNote>& notes : lists) {
    const auto again = parse_wake_notes(format_wake_notes(notes));
    REQUIRE(again);
    CHECK(*again == notes);
  }
  CHECK(first.operation() == "op-1");
  CHECK(first.attempt() == 2);
}

TEST_CASE("wol: a note that says too little, or too much, is refused whole") {
  std::string many = "[";
  for (int i = 0; i < 65; ++i) {
    many += R"({"id":"a","mac":"52:54:00:12:34:ab","time":"2026-11-20T12:00:00Z"},)";
  }
  many.back() = ']';
  for (const std::string& bad :
       {std::string("no json"), std::string("{}"), std::string("3"), many,
        std::string(R"({"id":"a","mac":"52:54","time":"2026-11-20T12:00:00Z"})"),
        std::string(R"({"id":"","mac":"52:54:00:12:34:ab","time":"2026-11-20T12:00:00Z"})"),
        std::string(R"({"id":"a","mac":"52:54:00:12:34:ab"})"),
        std::string(R"({"id":7,"mac":"52:54:00:12:34:ab","time":"2026-11-20T12:00:00Z"})"),
        std::string(R"([{"id":"a","mac":"52:54:00:12:34:ab","time":"2026-11-20T12:00:00Z"},3])")}) {
    CAPTURE(bad.substr(0, 80));
    const auto notes = parse_wake_notes(bad);
    REQUIRE_FALSE(notes);
    CHECK(notes.error().code == ErrorCode::parse);
    CHECK(notes.error().message.starts_with("kwatt.dev/wake-lan: "));
  }
}

TEST_CASE("wol: what is sent by UDP arrives") {
  const int receiver = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(receiver >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(receiver, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const timeval patience{5, 0};
  ::setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);

  REQUIRE(send_wake_udp(kMac, "127.0.0.1", ntohs(address.sin_port), ""));
  std::array<std::uint8_t, 200> got{};
  const ssize_t length = ::recv(receiver, got.data(), got.size(), 0);
  ::close(receiver);
  REQUIRE(length == 102);
  const auto packet = magic_packet(kMac);
  CHECK(std::equal(packet.begin(), packet.end(), got.begin()));
  CHECK_FALSE(send_wake_udp(kMac, "localhost", 9, ""));
}

}  // namespace
}  // namespace kwatt::hardware

TEST_SUITE_END();
