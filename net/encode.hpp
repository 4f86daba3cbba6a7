#pragma once
// Percent-encoding of the parts a request target is put together from.
#include <string>
#include <string_view>

namespace kwatt::net {

// Every byte but the unreserved ones (letters, digits, - . _ ~) as %XX; right for one path segment
// and for one query name or value.
std::string percent_encode(std::string_view text);

}  // namespace kwatt::net
