#pragma once
// Which hosts may be connected to, where the address comes from somebody who may write an object
// but does not run the controller: management controllers, predictors, sensors.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/http.hpp"

namespace kwatt::net {

// Immutable, copies share. Default: nothing is allowed.
class AllowList {
 public:
  AllowList() = default;

  // What an entry without http:// or https:// before it means.
  enum class Bare {
    encrypted,  // TLS only: passwords go there
    both,
  };

  // Entries, several in one text separated by commas: an IP address, a CIDR or a host name, perhaps
  // with http:// (plain HTTP only) or https:// before it.
  // Errors: invalid_argument, naming the entry.
  static Result<AllowList> parse(const std::vector<std::string>& texts, Bare bare);

  // May be connected to, as far as that can be told before the name is resolved.
  bool may(const std::string& host, bool tls) const;
  // For net::Client: may a connection to `host` go to this IP address? A host name on the list
  // vouches for whatever it resolves to; everything else must itself be on the list.
  std::function<bool(const std::string& ip)> filter(const std::string& host, bool tls) const;

 private:
  struct Entries;
  std::shared_ptr<const Entries> entries_;
};

}  // namespace kwatt::net
