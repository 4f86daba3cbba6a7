#pragma once
// Putting foreign text into a URL.
#include <string>
#include <string_view>

namespace kwatt::kube {

// Everything but RFC 3986's unreserved characters becomes %XX: fit for a path segment or a query.
std::string percent_encode(std::string_view text);

}  // namespace kwatt::kube
