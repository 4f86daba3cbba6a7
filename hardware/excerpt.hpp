#pragma once
// Foreign text in messages.
#include <string>
#include <string_view>

namespace kwatt::hardware {

// The beginning of foreign text, fit for a message: printable, at most `limit` bytes.
std::string excerpt(std::string_view text, std::size_t limit = 200);

}  // namespace kwatt::hardware
