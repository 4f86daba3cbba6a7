#pragma once
// Names to addresses, for peers that are reached by something else than net::Client.
#include <string>
#include <vector>

#include "net/client.hpp"

namespace kwatt::net {

// The numeric addresses of `host` (which may be one) that `filter` lets through; at least one. Use
// these and not the name again, which may mean another address the next time.
// Errors: unavailable (no such name), timeout, forbidden (all refused), cancelled.
Task<Result<std::vector<std::string>>> allowed_addresses(std::string host,
                                                         Client::AddressFilter filter,
                                                         Duration timeout);

}  // namespace kwatt::net
