#include <algorithm>

#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::node_ports {
namespace {

// "" means all addresses; so does "::", which the kubelet binds like 0.0.0.0 here (stricter than
// kube-scheduler, which compares the text).
bool any_address(const std::string& ip) {
  return ip.empty() || ip == "0.0.0.0" || ip == "::";
}

std::string_view protocol(const api::HostPort& port) {
  return port.protocol.empty() ? std::string_view{"TCP"} : std::string_view{port.protocol};
}

}  // namespace

bool conflict(const api::HostPort& a, const api::HostPort& b) {
  if (a.port <= 0 || a.port != b.port || protocol(a) != protocol(b)) return false;
  return any_address(a.host_ip) || any_address(b.host_ip) || a.host_ip == b.host_ip;
}

bool conflict(const std::vector<api::HostPort>& a, const std::vector<api::HostPort>& b) {
  return std::any_of(a.begin(), a.end(), [&](const api::HostPort& port) {
    return std::any_of(b.begin(), b.end(),
                       [&](const api::HostPort& other) { return conflict(port, other); });
  });
}

std::string explain(const std::vector<api::HostPort>& wanted) {
  std::string list;
  for (const api::HostPort& port : wanted) {
    list += fmt::format("{}{}/{}", list.empty() ? "" : ", ", port.port, protocol(port));
  }
  return fmt::format("a host port the pod wants ({}) is in use", list);
}

}  // namespace kwatt::placement::filters::node_ports
