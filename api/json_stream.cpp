#include "api/json_stream.hpp"

#include <array>

#include <fmt/format.h>

namespace kwatt::api {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Bytes that matter outside of strings.
constexpr std::array<bool, 256> structural_bytes() {
  std::array<bool, 256> table{};
  for (const char c : {'"', '{', '}', '[', ']'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto kStructural = structural_bytes();

bool structural(char c) {
  return kStructural[static_cast<unsigned char>(c)];
}

Error too_large(std::string_view what, std::size_t limit) {
  return fail(ErrorCode::parse, fmt::format("{} is larger than {} bytes", what, limit));
}

// Appends within the limit.
Result<void> append(std::string& to, std::string_view bytes, std::size_t limit,
                    std::string_view what) {
  if (bytes.size() > limit || to.size() > limit - bytes.size()) return too_large(what, limit);
  to.append(bytes);
  return {};
}

}  // namespace

std::size_t NestingScanner::scan(std::string_view bytes, std::size_t at) {
  const std::size_t size = bytes.size();
  while (at < size) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
        ++at;
        continue;
      }
      while (at < size && bytes[at] != '"' && bytes[at] != '\\') ++at;
      if (at == size) break;
      escaped_ = bytes[at] == '\\';
      in_string_ = escaped_;
      ++at;
      continue;
    }
    while (at < size && !structural(bytes[at])) ++at;
    if (at == size) break;
    const char c = bytes[at++];
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (--depth_ <= 0) {
      depth_ = 0;
      return at;
    }
  }
  return at;
}

Result<void> ValueSplitter::feed(std::string_view bytes, const OnValue& on_value) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (!inside_) {
      if (is_space(bytes[at])) {
        ++at;
        continue;
      }
      if (bytes[at] != '{') {
        return fail(ErrorCode::parse, fmt::format("expected an object, got byte 0x{:02x}",
                                                  static_cast<unsigned char>(bytes[at])));
      }
      inside_ = true;
      scanner_.reset();
      value_.clear();
    }
    const std::size_t end = scanner_.scan(bytes, at);
    if (auto done = append(value_, bytes.substr(at, end - at), limits_.max_value, "a watch frame");
        !done) {
      return done;
    }
    at = end;
    if (!scanner_.closed()) break;
    inside_ = false;
    if (auto done = on_value(value_); !done) return done;
  }
  return {};
}

Result<void> ListSplitter::feed(std::string_view bytes, const OnValue& on_item) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    Result<void> done{};
    switch (place_) {
      case Place::before:
      case Place::after:
        if (is_space(bytes[at])) {
          ++at;
        } else if (place_ == Place::before && bytes[at] == '{') {
          place_ = Place::top;
        } else {
          return fail(ErrorCode::parse, place_ == Place::before ? "a list must be an object"
                                                                : "bytes after the end of a list");
        }
        break;
      case Place::top:
        done = feed_top(bytes, at);
        break;
      case Place::between_items:
        done = feed_between(bytes, at);
        break;
      case Place::inside_item:
        done = feed_item(bytes, at, on_item);
        break;
    }
    if (!done) return done;
  }
  return {};
}

// Outside of the items, byte by byte: it is a few hundred bytes.
Result<void> ListSplitter::feed_top(std::string_view bytes, std::size_t& at) {
  while (at < bytes.size()) {
    const char c = bytes[at++];
    if (envelope_.size() >= limits_.max_envelope) {
      return too_large("a list without its items", limits_.max_envelope);
    }
    envelope_ += c;
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        const std::string_view text =
            std::string_view{envelope_}.substr(string_start_, envelope_.size() - string_start_ - 1);
        items_key_ = depth_ == 1 && text == "items";
      }
      continue;
    }
    if (c == '"') {
      in_string_ = true;
      string_start_ = envelope_.size();
    } else if (c == '{' || c == '[') {
      ++depth_;
      if (c == '[' && items_key_ && depth_ == 2) {
        items_key_ = false;
        place_ = Place::between_items;
        return {};
      }
    } else if (c == '}' || c == ']') {
      if (--depth_ <= 0) {
        place_ = Place::after;
        return {};
      }
    } else if (c != ':' && !is_space(c)) {
      items_key_ = false;
    }
  }
  return {};
}

Result<void> ListSplitter::feed_between(std::string_view bytes, std::size_t& at) {
  while (at < bytes.size()) {
    const char c = bytes[at];
    if (c == '{') {
      scanner_.reset();
      item_.clear();
      place_ = Place::inside_item;
      return {};
    }
    ++at;
    if (c == ']') {
      envelope_ += c;
      --depth_;
      place_ = Place::top;
      return {};
    }
    if (c != ',' && !is_space(c)) {
      return fail(ErrorCode::parse, "items: expected a list of objects");
    }
  }
  return {};
}

Result<void> ListSplitter::feed_item(std::string_view bytes, std::size_t& at,
                                     const OnValue& on_item) {
  const std::size_t end = scanner_.scan(bytes, at);
  if (auto done = append(item_, bytes.substr(at, end - at), limits_.max_value, "an item of a list");
      !done) {
    return done;
  }
  at = end;
  if (!scanner_.closed()) return {};
  place_ = Place::between_items;
  return on_item(item_);
}

Result<void> ListSplitter::finish() const {
  if (place_ == Place::after) return {};
  return fail(ErrorCode::parse, "the list ended in the middle");
}

}  // namespace kwatt::api
