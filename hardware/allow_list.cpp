#include "hardware/allow_list.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <fmt/format.h>

#include "net/http.hpp"

namespace kwatt::hardware {
namespace {

namespace ip = boost::asio::ip;

struct Scheme {
  std::string_view name;
  bool plain;  // passwords and commands in clear
};
// Those that connect to the host in their address.
constexpr std::array<Scheme, 5> kSchemes{{{"redfish+https://", false},
                                          {"redfish+http://", true},
                                          {"ipmi://", false},
                                          {"lab://", true},
                                          {"lab+http://", true}}};

struct Target {
  std::string host;  // lower case, without brackets
  bool plain = false;
};

std::string lower(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// IPv4 addresses in IPv6 clothes count as what they are.
std::optional<ip::address> address_of(const std::string& text) {
  boost::system::error_code error;
  ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

std::optional<Target> target_of(const std::string& bmc_address) {
  for (const Scheme& scheme : kSchemes) {
    if (!bmc_address.starts_with(scheme.name)) continue;
    const auto url = net::parse_url("https://" + bmc_address.substr(scheme.name.size()));
    if (!url) return std::nullopt;  // make_driver() says what is wrong with it
    return Target{lower(url->origin.host), scheme.plain};
  }
  return std::nullopt;
}

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

struct Entry {
  bool plain = false;
  std::string host;  // a name; else one of the networks
  std::optional<ip::network_v4> v4;
  std::optional<ip::network_v6> v6;

  bool covers(const ip::address& address) const {
    if (address.is_v4() && v4) {
      const std::uint32_t mask = v4->netmask().to_uint();
      return (address.to_v4().to_uint() & mask) == (v4->address().to_uint() & mask);
    }
    if (!address.is_v6() || !v6) return false;
    const auto theirs = address.to_v6().to_bytes(), ours = v6->address().to_bytes();
    for (unsigned bit = 0; bit < v6->prefix_length(); ++bit) {
      const unsigned shift = 7 - bit % 8;
      if (((theirs[bit / 8] ^ ours[bit / 8]) >> shift & 1U) != 0) return false;
    }
    return true;
  }
};

Result<Entry> parse_entry(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' {}; wanted is an address, a CIDR or a host name, with http:// "
                            "before it where plain HTTP is meant",
                            text, why));
  };
  Entry entry;
  std::string rest{text};
  if (const auto scheme = rest.find("://"); scheme != std::string::npos) {
    const std::string name = lower(rest.substr(0, scheme));
    if (name != "http" && name != "https") return wrong("has an unknown scheme");
    entry.plain = name == "http";
    rest.erase(0, scheme + 3);
  }
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  }
  boost::system::error_code error;
  if (rest.find('/') != std::string::npos) {
    const auto v4 = ip::make_network_v4(rest, error);
    if (!error) {
      entry.v4 = v4;
      return entry;
    }
    const auto v6 = ip::make_network_v6(rest, error);
    if (error) return wrong("is not a CIDR");
    entry.v6 = v6;
    return entry;
  }
  if (const auto address = address_of(rest)) {
    if (address->is_v4()) entry.v4 = ip::network_v4(address->to_v4(), 32);
    if (address->is_v6()) entry.v6 = ip::network_v6(address->to_v6(), 128);
    return entry;
  }
  if (!is_host_name(rest)) return wrong("is none");
  entry.host = lower(rest);
  return entry;
}

}  // namespace

struct AllowList::Entries {
  std::vector<Entry> all;

  bool names(const Target& target) const {
    return std::any_of(all.begin(), all.end(), [&](const Entry& entry) {
      return entry.plain == target.plain && !entry.host.empty() && entry.host == target.host;
    });
  }
  bool covers(const ip::address& address, bool plain) const {
    return std::any_of(all.begin(), all.end(), [&](const Entry& entry) {
      return entry.plain == plain && entry.covers(address);
    });
  }
  bool has_networks(bool plain) const {
    return std::any_of(all.begin(), all.end(), [&](const Entry& entry) {
      return entry.plain == plain && entry.host.empty();
    });
  }
};

Result<AllowList> AllowList::parse(const std::vector<std::string>& texts) {
  auto entries = std::make_shared<Entries>();
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string_view word = std::string_view{text}.substr(begin, comma - begin);
      begin = comma + 1;
      if (word.empty()) continue;
      auto entry = parse_entry(word);
      if (!entry) return entry.error();
      entries->all.push_back(std::move(*entry));
    }
  }
  AllowList list;
  list.entries_ = std::move(entries);
  return list;
}

std::string AllowList::refusal(const std::string& bmc_address) const {
  const auto target = target_of(bmc_address);
  if (!target) return {};
  if (entries_) {
    if (entries_->names(*target)) return {};
    const auto address = address_of(target->host);
    if (address && entries_->covers(*address, target->plain)) return {};
    if (!address && entries_->has_networks(target->plain)) return {};
  }
  return fmt::format("BMC {} is not allowed: start kwatt-controller with --bmc-allow {}{}",
                     target->host, target->plain ? "http://" : "", target->host);
}

std::function<bool(const std::string& ip)> AllowList::filter(const std::string& bmc_address) const {
  const auto target = target_of(bmc_address);
  // The function owns what it needs: drivers outlive the list they were made with.
  return [entries = entries_, target](const std::string& text) {
    if (!entries || !target) return false;
    if (entries->names(*target)) return true;
    const auto address = address_of(text);
    return address && entries->covers(*address, target->plain);
  };
}

}  // namespace kwatt::hardware
