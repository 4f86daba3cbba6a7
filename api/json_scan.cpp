#include "api/json_scan.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace kwatt::api {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

constexpr std::size_t kBlock = 64;

// One bit for each of 64 bytes. Brackets and braces count alike: whether they match is the
// decoder's business.
struct Masks {
  std::uint64_t quotes = 0, backslashes = 0, opens = 0, closes = 0;
};

#ifdef __SSE2__
Masks masks_of(const char* bytes) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  // '{' and '[', '}' and ']' differ in this bit alone.
  const __m128i bit = _mm_set1_epi8(0x20), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
  const auto mask = [](__m128i equal) {
    return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(equal)));
  };
  Masks masks;
  for (unsigned i = 0; i < kBlock; i += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    const __m128i folded = _mm_or_si128(part, bit);
    masks.quotes |= mask(_mm_cmpeq_epi8(part, quote)) << i;
    masks.backslashes |= mask(_mm_cmpeq_epi8(part, backslash)) << i;
    masks.opens |= mask(_mm_cmpeq_epi8(folded, open)) << i;
    masks.closes |= mask(_mm_cmpeq_epi8(folded, close)) << i;
  }
  return masks;
}
#else
Masks masks_of(const char* bytes) {
  Masks masks;
  for (unsigned i = 0; i < kBlock; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const char c = bytes[i];
    if (c == '"') masks.quotes |= bit;
    if (c == '\\') masks.backslashes |= bit;
    if (c == '{' || c == '[') masks.opens |= bit;
    if (c == '}' || c == ']') masks.closes |= bit;
  }
  return masks;
}
#endif

// Bit i: an odd number of bits up to and including i is set.
std::uint64_t prefix_xor(std::uint64_t bits) {
  for (unsigned shift = 1; shift < kBlock; shift *= 2) bits ^= bits << shift;
  return bits;
}

// Few brackets are in one block, and a library call for each count would cost more than this loop.
int count_bits(std::uint64_t bits) {
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// Follows nesting and strings through 64 bytes at a time.
class BlockScanner {
 public:
  // The text begins `depth` brackets deep, outside of a string.
  explicit BlockScanner(int depth) : depth_(depth) {}

  // Offset within the block just behind the bracket that closes the outermost value; nullopt: it is
  // not in this block.
  std::optional<std::size_t> scan(const char* bytes) {
    const Masks masks = masks_of(bytes);
    const std::uint64_t quotes = masks.quotes & ~escaped(masks.backslashes);
    const std::uint64_t inside = prefix_xor(quotes) ^ in_string_;
    in_string_ = (inside >> (kBlock - 1)) != 0 ? ~std::uint64_t{0} : 0;
    const std::uint64_t opens = masks.opens & ~inside;
    std::uint64_t closes = masks.closes & ~inside;
    if ((opens | closes) == 0) return std::nullopt;
    // The end may be here: one closing bracket after the other.
    int closed = 0;
    for (; closes != 0; closes &= closes - 1) {
      const int at = std::countr_zero(closes);
      ++closed;
      if (depth_ > closed) continue;
      const std::uint64_t before = (std::uint64_t{1} << at) - 1;
      if (depth_ + count_bits(opens & before) == closed) return static_cast<std::size_t>(at) + 1;
    }
    depth_ += count_bits(opens) - closed;
    return std::nullopt;
  }

 private:
  // The bytes that a backslash before them takes their meaning from: those at an odd distance from
  // where a run of backslashes begins. A carry runs through each run (Langdale and Lemire, "Parsing
  // Gigabytes of JSON per Second", VLDB Journal 2019, section 3.1.1), so no run costs a loop.
  std::uint64_t escaped(std::uint64_t backslashes) {
    constexpr std::uint64_t kEven = 0x5555'5555'5555'5555;
    if (backslashes == 0) return std::exchange(escape_next_, 0);
    backslashes &= ~escape_next_;
    const std::uint64_t behind = backslashes << 1 | escape_next_;
    const std::uint64_t odd_starts = backslashes & ~kEven & ~behind;
    std::uint64_t carried = 0;
    escape_next_ = __builtin_add_overflow(odd_starts, backslashes, &carried) ? 1 : 0;
    return (kEven ^ (carried << 1)) & behind;
  }

  std::uint64_t in_string_ = 0;    // all ones within a string
  std::uint64_t escape_next_ = 0;  // 1: the next block's first byte is escaped
  int depth_;
};

}  // namespace

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::optional<std::size_t> end_of_string(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '"') return std::nullopt;
  for (std::size_t from = at + 1; from < text.size();) {
    const void* found = std::memchr(text.data() + from, '"', text.size() - from);
    if (found == nullptr) return std::nullopt;
    const auto quote = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    std::size_t slashes = 0;
    while (quote - slashes > at + 1 && text[quote - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return quote + 1;
    from = quote + 1;
  }
  return std::nullopt;
}

std::optional<std::size_t> end_of_plain_string(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '"') return std::nullopt;
  ++at;
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1f);
  for (; at + 16 <= text.size(); at += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(part, last_control), part);
    const __m128i found = _mm_or_si128(
        control, _mm_or_si128(_mm_cmpeq_epi8(part, quote), _mm_cmpeq_epi8(part, backslash)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found));
    if (mask == 0) continue;
    at += static_cast<std::size_t>(std::countr_zero(mask));
    if (text[at] != '"') return std::nullopt;
    return at;
  }
#endif
  for (; at < text.size(); ++at) {
    if (text[at] == '"') return at;
    if (text[at] == '\\' || static_cast<unsigned char>(text[at]) < 0x20) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::size_t> end_of_nested(std::string_view text, std::size_t at) {
  if (at >= text.size() || (text[at] != '{' && text[at] != '[')) return std::nullopt;
  return end_of_open(text, at, 0);
}

std::optional<std::size_t> end_of_open(std::string_view text, std::size_t at, int depth) {
  BlockScanner scanner{depth};
  for (; at + kBlock <= text.size(); at += kBlock) {
    if (const auto end = scanner.scan(text.data() + at)) return at + *end;
  }
  if (at >= text.size()) return std::nullopt;
  char last[kBlock] = {};
  std::memcpy(last, text.data() + at, text.size() - at);
  if (const auto end = scanner.scan(last)) return at + *end;
  return std::nullopt;
}

std::optional<std::size_t> end_of_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::nullopt;
  const char first = text[at];
  if (first == '"') return end_of_string(text, at);
  if (first == '{' || first == '[') return end_of_nested(text, at);
  std::size_t end = at;
  while (end < text.size() && !is_space(text[end]) && text[end] != ',' && text[end] != '}' &&
         text[end] != ']') {
    ++end;
  }
  if (end == at) return std::nullopt;
  return end;
}

JsonWalk::JsonWalk(std::string_view text, std::size_t at) : text_(text), at_(skip_space(text, at)) {
  if (at_ < text_.size() && text_[at_] == '{') close_ = '}';
  if (at_ < text_.size() && text_[at_] == '[') close_ = ']';
  if (close_ == '\0') {
    stop(false);
  } else {
    ++at_;
  }
}

std::optional<JsonMember> JsonWalk::stop(bool good) {
  done_ = true;
  good_ = good;
  return std::nullopt;
}

void JsonWalk::resume(std::size_t end) {
  at_ = end;
  within_ = false;
}

std::optional<JsonMember> JsonWalk::skip(JsonMember entered) {
  const auto end = end_of_value(text_, entered.begin);
  if (!end) return stop(false);
  entered.end = *end;
  resume(*end);
  return entered;
}

std::optional<JsonMember> JsonWalk::next() {
  const auto entered = enter();
  return entered ? skip(*entered) : std::nullopt;
}

std::optional<JsonMember> JsonWalk::enter() {
  if (!done_ && within_) static_cast<void>(skip({{}, at_, at_}));
  if (done_) return std::nullopt;
  at_ = skip_space(text_, at_);
  if (at_ >= text_.size()) return stop(false);
  if (text_[at_] == close_ && first_) {
    ++at_;
    return stop(true);
  }
  if (!first_) {
    if (text_[at_] == close_) {
      ++at_;
      return stop(true);
    }
    if (text_[at_] != ',') return stop(false);
    at_ = skip_space(text_, at_ + 1);
  }
  first_ = false;
  JsonMember member;
  if (is_object()) {
    const auto key_end = end_of_string(text_, at_);
    if (!key_end) return stop(false);
    member.key = text_.substr(at_ + 1, *key_end - at_ - 2);
    at_ = skip_space(text_, *key_end);
    if (at_ >= text_.size() || text_[at_] != ':') return stop(false);
    at_ = skip_space(text_, at_ + 1);
  }
  member.begin = member.end = at_;
  within_ = true;
  return member;
}

}  // namespace kwatt::api
