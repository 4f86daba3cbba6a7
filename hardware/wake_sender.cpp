#include "hardware/wake_sender.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <map>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

constexpr std::uint16_t kDiscard = 9;
constexpr std::uint16_t kWakeEtherType = 0x0842;

class Socket {
 public:
  Socket(int domain, int type, int protocol)
      : fd_(::socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error errno_error(const std::string& what) {
  return fail(ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Interface {
  std::optional<in_addr> broadcast;  // nullopt: it has IPv6 only
};

bool own_ipv6(const sockaddr* address) {
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return !IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

std::map<std::string, Interface> broadcast_interfaces() {
  std::map<std::string, Interface> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned int kWanted = IFF_UP | IFF_BROADCAST;
    const bool wanted = (entry->ifa_flags & kWanted) == kWanted &&
                        (entry->ifa_flags & IFF_LOOPBACK) == 0 && entry->ifa_addr != nullptr;
    if (!wanted) continue;
    if (entry->ifa_addr->sa_family == AF_INET && entry->ifa_broadaddr != nullptr) {
      sockaddr_in v4{};
      std::memcpy(&v4, entry->ifa_broadaddr, sizeof v4);
      found[entry->ifa_name].broadcast = v4.sin_addr;
    } else if (entry->ifa_addr->sa_family == AF_INET6 && own_ipv6(entry->ifa_addr)) {
      found[entry->ifa_name];
    }
  }
  return found;
}

Result<void> send_frame(const MacAddress& mac, const std::string& device) {
  const Socket socket(AF_PACKET, SOCK_DGRAM, 0);
  if (socket.get() < 0) return errno_error("an Ethernet frame");
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(kWakeEtherType);
  to.sll_ifindex = static_cast<int>(::if_nametoindex(device.c_str()));
  to.sll_halen = 6;
  std::memset(to.sll_addr, 0xff, 6);
  const auto packet = magic_packet(mac);
  if (::sendto(socket.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&to),
               sizeof to) < 0) {
    return errno_error(fmt::format("an Ethernet frame through {}", device));
  }
  return {};
}

}  // namespace

Result<void> send_wake_udp(const MacAddress& mac, const std::string& address, std::uint16_t port,
                           const std::string& device) {
  const std::string what = fmt::format("a magic packet to {}:{}", address, port);
  const Socket socket(AF_INET, SOCK_DGRAM, 0);
  if (socket.get() < 0) return errno_error(what);
  const int yes = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes) != 0) {
    return errno_error(what);
  }
  // Without it the routing table chooses; that is right but where two interfaces share a subnet.
  if (!device.empty()) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, device.data(),
                 static_cast<socklen_t>(device.size()));
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) {
    return fail(ErrorCode::invalid_argument, what + ": not an IPv4 address");
  }
  const auto packet = magic_packet(mac);
  if (::sendto(socket.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&to),
               sizeof to) < 0) {
    return errno_error(what);
  }
  return {};
}

Result<Sent> send_magic_packet(const MacAddress& mac) {
  Sent sent;
  std::optional<Error> first;
  const auto interfaces = broadcast_interfaces();
  for (const auto& [name, interface] : interfaces) {
    const auto note = [&, device = name](const Result<void>& done, const char* how) {
      if (done) {
        sent.push_back(fmt::format("{} {}", device, how));
      } else if (!first) {
        first = done.error();
      }
    };
    if (interface.broadcast) {
      std::array<char, INET_ADDRSTRLEN> text{};
      ::inet_ntop(AF_INET, &*interface.broadcast, text.data(), text.size());
      note(send_wake_udp(mac, text.data(), kDiscard, name), "udp");
    }
    note(send_frame(mac, name), "ethernet");
  }
  if (!sent.empty()) return sent;
  if (first) return *first;
  return fail(ErrorCode::unsupported,
              "no network interface can broadcast: the agent of a wake-on-LAN relay needs the "
              "host's network (hostNetwork)");
}

}  // namespace kwatt::hardware
