#pragma once
// Puts magic packets onto the wire.
#include <cstdint>
#include <string>
#include <vector>

#include "hardware/wake_lan.hpp"

namespace kwatt::hardware {

// What was sent where, for the log: "eth0 udp", "eth0 ethernet".
using Sent = std::vector<std::string>;

// Sends the packet through every interface that is up, can broadcast and has an address of its own
// (not link-local): as UDP to port 9 of the subnet's broadcast address, and, where the process may
// (CAP_NET_RAW), as an Ethernet frame of type 0x0842. Does not wait.
// Errors: unsupported (no such interface; an agent without hostNetwork has only the pod's), io (all
// failed; the first reason).
Result<Sent> send_magic_packet(const MacAddress& mac);

// One packet by UDP to a numeric IPv4 address; through `device` if one is named. Errors: io.
Result<void> send_wake_udp(const MacAddress& mac, const std::string& address, std::uint16_t port,
                           const std::string& device);

}  // namespace kwatt::hardware
