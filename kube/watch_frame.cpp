#include "kube/watch_frame.hpp"

#include <array>
#include <utility>

namespace kwatt::kube {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool take(char byte) {
    skip_space();
    if (rest_.empty() || rest_.front() != byte) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A string with its quotes, or nothing.
  std::string_view string() {
    skip_space();
    if (rest_.empty() || rest_.front() != '"') return {};
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != '"') at += rest_[at] == '\\' ? 2 : 1;
    if (at >= rest_.size()) return {};
    return cut(at + 1);
  }

  // Any value, raw; empty if the text ends before.
  std::string_view value() {
    skip_space();
    if (rest_.empty()) return {};
    if (rest_.front() == '"') return string();
    if (rest_.front() == '{' || rest_.front() == '[') return nested();
    const auto end = rest_.find_first_of(",}] \t\r\n");
    return end == std::string_view::npos ? std::string_view{} : cut(end);
  }

 private:
  void skip_space() {
    const auto first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  std::string_view cut(std::size_t count) {
    const std::string_view part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }

  std::string_view nested() {
    std::size_t depth = 0;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      const char byte = rest_[at];
      if (byte == '"') {
        for (++at; at < rest_.size() && rest_[at] != '"'; ++at) {
          if (rest_[at] == '\\') ++at;
        }
      } else if (byte == '{' || byte == '[') {
        ++depth;
      } else if ((byte == '}' || byte == ']') && --depth == 0) {
        return cut(at + 1);
      }
    }
    return {};
  }

  std::string_view rest_;
};

std::string_view unquote(std::string_view raw) {
  if (raw.size() < 2 || raw.front() != '"') return {};
  return raw.substr(1, raw.size() - 2);
}

WatchFrame::Type type_of(std::string_view text) {
  using Type = WatchFrame::Type;
  static constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes{{
      {"ADDED", Type::added},
      {"MODIFIED", Type::modified},
      {"DELETED", Type::deleted},
      {"BOOKMARK", Type::bookmark},
      {"ERROR", Type::error},
  }};
  for (const auto& [name, type] : kTypes) {
    if (name == text) return type;
  }
  return Type::unknown;
}

}  // namespace

std::string_view raw_member(std::string_view object, std::string_view key) {
  Cursor cursor(object);
  if (!cursor.take('{')) return {};
  do {
    const std::string_view name = cursor.string();
    if (name.empty() || !cursor.take(':')) return {};
    const std::string_view value = cursor.value();
    if (unquote(name) == key) return value;
    if (value.empty()) return {};
  } while (cursor.take(','));
  return {};
}

Result<WatchFrame> parse_watch_frame(std::string_view json) {
  WatchFrame frame;
  frame.type_text = unquote(raw_member(json, "type"));
  if (frame.type_text.empty()) {
    if (unquote(raw_member(json, "kind")) == "Status") {
      frame.type = WatchFrame::Type::error;
      frame.type_text = "ERROR";
      frame.object = json;
      return frame;
    }
    return fail(ErrorCode::parse, "watch frame without a type");
  }
  frame.type = type_of(frame.type_text);
  frame.object = raw_member(json, "object");
  if (frame.type != WatchFrame::Type::unknown &&
      (frame.object.empty() || frame.object.front() != '{')) {
    return fail(ErrorCode::parse, "watch frame without an object");
  }
  // A Status is no Pod, whatever the type says.
  if (frame.type != WatchFrame::Type::error && frame.type != WatchFrame::Type::unknown &&
      unquote(raw_member(frame.object, "kind")) == "Status" &&
      unquote(raw_member(frame.object, "apiVersion")) == "v1") {
    frame.type = WatchFrame::Type::error;
  }
  return frame;
}

std::string metadata_resource_version(std::string_view object) {
  return std::string(unquote(raw_member(raw_member(object, "metadata"), "resourceVersion")));
}

}  // namespace kwatt::kube
