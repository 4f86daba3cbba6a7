#include "hardware/allow_list.hpp"

#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace kwatt::hardware {
namespace {

struct Scheme {
  std::string_view name;
  bool tls;  // else passwords and commands go in clear
};
// Those that connect to the host in their address.
constexpr std::array<Scheme, 5> kSchemes{{{"redfish+https://", true},
                                          {"redfish+http://", false},
                                          {"ipmi://", true},
                                          {"lab://", false},
                                          {"lab+http://", false}}};

struct Target {
  std::string host;  // without brackets
  bool tls = true;
};

std::optional<Target> target_of(const std::string& bmc_address) {
  for (const Scheme& scheme : kSchemes) {
    if (!bmc_address.starts_with(scheme.name)) continue;
    const auto url = net::parse_url("https://" + bmc_address.substr(scheme.name.size()));
    if (!url) return std::nullopt;  // make_driver() says what is wrong with it
    return Target{url->origin.host, scheme.tls};
  }
  return std::nullopt;
}

}  // namespace

Result<AllowList> AllowList::parse(const std::vector<std::string>& texts) {
  auto hosts = net::AllowList::parse(texts, net::AllowList::Bare::encrypted);
  if (!hosts) return hosts.error();
  AllowList list;
  list.hosts_ = std::move(*hosts);
  return list;
}

std::string AllowList::refusal(const std::string& bmc_address) const {
  const auto target = target_of(bmc_address);
  if (!target || hosts_.may(target->host, target->tls)) return {};
  return fmt::format("BMC {} is not allowed: start kwatt-controller with --bmc-allow {}{}",
                     target->host, target->tls ? "" : "http://", target->host);
}

std::function<bool(const std::string& ip)> AllowList::filter(const std::string& bmc_address) const {
  const auto target = target_of(bmc_address);
  if (!target) return [](const std::string&) { return false; };
  return hosts_.filter(target->host, target->tls);
}

}  // namespace kwatt::hardware
