#include "api/quantity.hpp"

#include <limits>

namespace kwatt::api {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
__extension__ typedef __int128 Wide;  // GCC and Clang; ISO C++ has no such type

// value × 2^shift × 10^exponent
struct Suffix {
  int shift = 0;
  int exponent = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "e3", "E-2": digits with an optional sign; bounded, because Kubernetes bounds them too.
std::optional<Suffix> parse_exponent(std::string_view text) {
  text.remove_prefix(1);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > 4) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return Suffix{0, negative ? -value : value};
}

std::optional<Suffix> parse_suffix(std::string_view text) {
  if (text.empty()) return Suffix{};
  constexpr std::string_view kBinary = "KMGTPE";
  if (text.size() == 2 && text[1] == 'i') {
    const std::size_t at = kBinary.find(text[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Suffix{10 * (static_cast<int>(at) + 1), 0};
  }
  if (text.size() == 1) {
    switch (text[0]) {
      case 'n':
        return Suffix{0, -9};
      case 'u':
        return Suffix{0, -6};
      case 'm':
        return Suffix{0, -3};
      case 'k':
        return Suffix{0, 3};
      case 'M':
        return Suffix{0, 6};
      case 'G':
        return Suffix{0, 9};
      case 'T':
        return Suffix{0, 12};
      case 'P':
        return Suffix{0, 15};
      case 'E':
        return Suffix{0, 18};
      default:
        return std::nullopt;
    }
  }
  if (text[0] == 'e' || text[0] == 'E') return parse_exponent(text);
  return std::nullopt;
}

// number × 10^exponent, rounded up, for number ≥ 0; saturates.
std::int64_t scale_up(Wide number, int exponent) {
  for (; exponent > 0 && number != 0; --exponent) {
    number *= 10;
    if (number > kMax) return kMax;
  }
  Wide divisor = 1;
  for (; exponent < 0; ++exponent) {
    divisor *= 10;
    if (divisor > number) return number == 0 ? 0 : 1;
  }
  const Wide result = (number + divisor - 1) / divisor;
  return result > kMax ? kMax : static_cast<std::int64_t>(result);
}

std::optional<std::int64_t> parse(std::string_view text, int extra_exponent) {
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  // 18 significant digits fit with room for a binary suffix of 60 bits; what follows only rounds.
  Wide digits = 0;
  int exponent = 0;
  bool any = false;
  bool rest = false;
  bool fraction = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.') {
      if (fraction) return std::nullopt;
      fraction = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    if (digits < 100'000'000'000'000'000) {
      digits = digits * 10 + (c - '0');
      if (fraction) --exponent;
    } else {
      rest = rest || c != '0';
      if (!fraction) ++exponent;
    }
  }
  if (!any) return std::nullopt;
  const auto suffix = parse_suffix(text.substr(at));
  if (!suffix) return std::nullopt;
  if (rest) ++digits;
  const std::int64_t value =
      scale_up(digits << suffix->shift, exponent + suffix->exponent + extra_exponent);
  return negative ? -value : value;
}

}  // namespace

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  return parse(text, 0);
}

std::optional<std::int64_t> parse_quantity_milli(std::string_view text) {
  return parse(text, 3);
}

}  // namespace kwatt::api
