#include "kube/base64.hpp"

#include <cstdint>

namespace kwatt::kube {
namespace {

int digit(char byte) {
  if (byte >= 'A' && byte <= 'Z') return byte - 'A';
  if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
  if (byte >= '0' && byte <= '9') return byte - '0' + 52;
  if (byte == '+') return 62;
  if (byte == '/') return 63;
  return -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int count = 0, padding = 0;
  for (const char byte : text) {
    if (byte == '\n' || byte == '\r' || byte == ' ' || byte == '\t') continue;
    if (byte == '=') {
      ++padding;
    } else if (padding > 0 || digit(byte) < 0) {
      return std::nullopt;
    } else {
      group = group << 6 | static_cast<std::uint32_t>(digit(byte));
    }
    if (byte == '=') group <<= 6;
    if (++count < 4) continue;
    if (padding > 2) return std::nullopt;
    for (int i = 0; i < 3 - padding; ++i) {
      out.push_back(static_cast<char>(group >> (16 - 8 * i) & 0xff));
    }
    group = 0;
    count = 0;
    if (padding > 0) padding = 3;  // nothing may follow: one more digit or '=' is an error
  }
  if (count != 0) return std::nullopt;
  return out;
}

}  // namespace kwatt::kube
