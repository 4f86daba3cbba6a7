#include "hardware/excerpt.hpp"

namespace kwatt::hardware {

std::string excerpt(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) return out + "...";
    const bool blank = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  return out;
}

}  // namespace kwatt::hardware
