#pragma once
// Which machines' controllers we may talk to (option --bmc-allow). Whoever may write NodePower.spec
// chooses where the controller connects and whose password it sends there: this list is the
// operator's word on it.
#include <functional>
#include <string>
#include <vector>

#include "net/allow_list.hpp"

namespace kwatt::hardware {

// Immutable, copies share. Default: nothing is allowed.
class AllowList {
 public:
  AllowList() = default;

  // Entries, several in one text separated by commas: an IP address, a CIDR or a host name, each
  // for encrypted protocols (https, IPMI 2.0); with http:// before it for plain HTTP.
  // Errors: invalid_argument, naming the entry.
  static Result<AllowList> parse(const std::vector<std::string>& texts);

  // Why NodePower.spec.bmc.address must not be used, with the option that would allow it; "": it
  // may be, or that is only known once its host name is resolved. Addresses of schemes that do not
  // connect to a host (wol, command, metal3) are not for this list.
  std::string refusal(const std::string& bmc_address) const;

  // For DriverConfig::address_allowed: may a connection for `bmc_address` go to this IP address?
  // A host name on the list vouches for whatever it resolves to; everything else must itself be on
  // the list.
  std::function<bool(const std::string& ip)> filter(const std::string& bmc_address) const;

 private:
  net::AllowList hosts_;
};

}  // namespace kwatt::hardware
