#pragma once
// Wake-on-LAN: addresses, the magic packet, and the annotation kwatt.dev/wake-lan by which the
// controller asks the agent of an awake node to send one. PURE.
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kwatt::hardware {

inline constexpr std::string_view kWakeAnnotation = "kwatt.dev/wake-lan";
inline constexpr std::string_view kPowerStateAnnotation = "kwatt.dev/power-state";
// The boot that kwatt.dev/power-state is about: after the next one it means nothing.
inline constexpr std::string_view kPowerOffBootAnnotation = "kwatt.dev/power-off-boot";

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  auto operator<=>(const MacAddress&) const = default;
};
std::string to_string(const MacAddress& mac);  // "aa:bb:cc:dd:ee:ff"
// Six pairs of hexadecimal digits with ':' or '-' between them. Errors: invalid_argument, also for
// a group address and for zeros, which no network card has.
Result<MacAddress> parse_mac(std::string_view text);
// "wol:MAC" or "wol://MAC". Errors: invalid_argument.
Result<MacAddress> parse_wake_address(std::string_view address);

// Six bytes 0xff, then the address sixteen times.
std::array<std::uint8_t, 102> magic_packet(const MacAddress& mac);

// One request to a relay. `id` is "OPERATION/ATTEMPT": every id is sent once.
struct WakeNote {
  std::string id, node;  // node: whose machine is woken
  MacAddress mac;
  TimePoint time;
  bool operator==(const WakeNote&) const = default;
  std::string operation() const;  // the part of id before the slash
  int attempt() const;            // the part behind it; 0: none
};
// The annotation's value: one object {"id","mac","node","time"}, or a list of them where one relay
// wakes several machines. Errors: parse (with the beginning of the text), also for more than 64.
Result<std::vector<WakeNote>> parse_wake_notes(std::string_view json);
std::string format_wake_notes(const std::vector<WakeNote>& notes);

}  // namespace kwatt::hardware
