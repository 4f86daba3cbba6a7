#include "net/allow_list.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <fmt/format.h>

namespace kwatt::net {
namespace {

namespace ip = boost::asio::ip;

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

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

struct Entry {
  bool plain = false, encrypted = true;  // which of the two it allows
  std::string host;                      // a name; else one of the networks
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

Result<Entry> parse_entry(std::string_view text, AllowList::Bare bare) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' {}; wanted is an address, a CIDR or a host name, with http:// "
                            "before it where plain HTTP is meant",
                            text, why));
  };
  Entry entry;
  entry.plain = bare == AllowList::Bare::both;
  std::string rest{text};
  if (const auto scheme = rest.find("://"); scheme != std::string::npos) {
    const std::string name = lower(rest.substr(0, scheme));
    if (name != "http" && name != "https") return wrong("has an unknown scheme");
    entry.plain = name == "http";
    entry.encrypted = !entry.plain;
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

  template <class Test>
  bool any(bool tls, Test test) const {
    return std::any_of(all.begin(), all.end(), [&](const Entry& entry) {
      return (tls ? entry.encrypted : entry.plain) && test(entry);
    });
  }
  bool names(const std::string& host, bool tls) const {
    return any(tls, [&](const Entry& entry) { return !entry.host.empty() && entry.host == host; });
  }
  bool covers(const ip::address& address, bool tls) const {
    return any(tls, [&](const Entry& entry) { return entry.covers(address); });
  }
  bool has_networks(bool tls) const {
    return any(tls, [](const Entry& entry) { return entry.host.empty(); });
  }
};

Result<AllowList> AllowList::parse(const std::vector<std::string>& texts, Bare bare) {
  auto entries = std::make_shared<Entries>();
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string_view word = std::string_view{text}.substr(begin, comma - begin);
      begin = comma + 1;
      if (word.empty()) continue;
      auto entry = parse_entry(word, bare);
      if (!entry) return entry.error();
      entries->all.push_back(std::move(*entry));
    }
  }
  AllowList list;
  list.entries_ = std::move(entries);
  return list;
}

bool AllowList::may(const std::string& host, bool tls) const {
  if (!entries_) return false;
  if (entries_->names(lower(host), tls)) return true;
  const auto address = address_of(host);
  return address ? entries_->covers(*address, tls) : entries_->has_networks(tls);
}

std::function<bool(const std::string& ip)> AllowList::filter(const std::string& host,
                                                             bool tls) const {
  // The function owns what it needs: clients outlive the list they were made with.
  return [entries = entries_, name = lower(host), tls](const std::string& text) {
    if (!entries) return false;
    if (entries->names(name, tls)) return true;
    const auto address = address_of(text);
    return address && entries->covers(*address, tls);
  };
}

}  // namespace kwatt::net
