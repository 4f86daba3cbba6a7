#include "api/decode.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace kwatt::api {
namespace {

std::string_view wanted(TypeKind kind) {
  switch (kind) {
    case TypeKind::boolean:
      return "true or false";
    case TypeKind::integer:
      return "integer";
    case TypeKind::string:
    case TypeKind::enumeration:
      return "string";
    case TypeKind::duration:
      return "a duration such as 90s or 10m";
    case TypeKind::timestamp:
      return "an RFC 3339 time";
    case TypeKind::object:
    case TypeKind::string_map:
    case TypeKind::object_map:
      return "object";
    case TypeKind::list:
      return "list";
    case TypeKind::presence:
    case TypeKind::optional:
      break;
  }
  return "a value";
}

// Values longer than this say nothing more in an error.
std::string shortened(std::string_view text) {
  constexpr std::size_t kShown = 40;
  if (text.size() <= kShown) return std::string{text};
  return std::string{text.substr(0, kShown)} + "…";
}

// The SAX handler: a stack of the objects and lists being filled. Everything below an unknown key
// is counted, not stored.
class Handler {
 public:
  using SizeType = rapidjson::SizeType;

  Handler(const TypeInfo& type, void* out) : root_type_(&type), root_(out) { frames_.reserve(16); }

  bool Null() {
    if (skipping()) return true;
    const Slot slot = next();
    if (!frames_.empty() && frames_.back().type->kind == TypeKind::list) {
      return mismatch(*slot.type, "null");
    }
    // null is "absent", but it does unset what an earlier duplicate of the key had set.
    if (slot.type != nullptr && slot.type->kind == TypeKind::optional) slot.type->clear(slot.value);
    return true;
  }

  bool Bool(bool value) {
    if (skipping()) return true;
    const Slot slot = engaged(next());
    if (slot.type == nullptr) return true;
    if (slot.type->kind == TypeKind::presence || slot.type->kind == TypeKind::boolean) {
      *static_cast<bool*>(slot.value) = slot.type->kind == TypeKind::presence || value;
      return true;
    }
    return mismatch(*slot.type, value ? "true" : "false");
  }

  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Int64(value); }
  bool Int64(std::int64_t value) {
    if (skipping()) return true;
    const Slot slot = engaged(next());
    if (slot.type == nullptr) return true;
    if (slot.type->kind == TypeKind::integer) {
      *static_cast<std::int64_t*>(slot.value) = value;
      return true;
    }
    return number(slot, fmt::format("{}", value));
  }
  bool Uint64(std::uint64_t value) {
    if (skipping()) return true;
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Int64(static_cast<std::int64_t>(value));
    }
    const Slot slot = engaged(next());
    return slot.type == nullptr || number(slot, fmt::format("{}", value));
  }
  bool Double(double value) {
    if (skipping()) return true;
    const Slot slot = engaged(next());
    if (slot.type == nullptr) return true;
    // The API server takes 3.0 for the integer 3, as long as a double is exact.
    constexpr double kExact = 9007199254740992.0;
    if (slot.type->kind == TypeKind::integer && value >= -kExact && value <= kExact &&
        std::trunc(value) == value) {
      *static_cast<std::int64_t*>(slot.value) = static_cast<std::int64_t>(value);
      return true;
    }
    return number(slot, fmt::format("{}", value));
  }
  bool RawNumber(const char*, SizeType, bool) { return false; }  // not asked for

  bool String(const char* data, SizeType size, bool) {
    if (skipping()) return true;
    return text(engaged(next()), std::string_view{data, size});
  }

  bool StartObject() {
    if (!descend()) return false;
    if (skip_ > 0) {
      ++skip_;
      return true;
    }
    return open(TypeKind::object);
  }
  bool Key(const char* data, SizeType size, bool) {
    if (skipping()) return true;
    Frame& frame = frames_.back();
    frame.key = std::string_view{data, size};
    frame.field = nullptr;
    if (frame.type->kind == TypeKind::string_map || frame.type->kind == TypeKind::object_map) {
      return true;
    }
    for (const FieldInfo& field : frame.type->fields) {
      if (field.name == frame.key) {
        frame.field = &field;
        break;
      }
    }
    return true;
  }
  bool EndObject(SizeType) { return close(); }
  bool StartArray() {
    if (!descend()) return false;
    if (skip_ > 0) {
      ++skip_;
      return true;
    }
    return open(TypeKind::list);
  }
  bool EndArray(SizeType) { return close(); }

  const std::string& error() const { return error_; }

 private:
  struct Frame {
    const TypeInfo* type = nullptr;
    void* value = nullptr;
    const FieldInfo* field = nullptr;  // of an object: the member that comes next
    std::string_view key;              // of an object or map
    std::size_t index = 0;             // of a list: elements begun so far
  };
  struct Slot {
    const TypeInfo* type = nullptr;  // null: nobody wants the value
    void* value = nullptr;
  };

  bool skipping() const { return skip_ > 0; }

  // Where the next value belongs. A list grows by one element.
  Slot next() {
    if (frames_.empty()) return {root_type_, root_};
    Frame& frame = frames_.back();
    if (frame.type->kind == TypeKind::list) {
      ++frame.index;
      return {&frame.type->element(), frame.type->append(frame.value)};
    }
    // A map takes texts, told by its own type.
    if (frame.type->kind == TypeKind::string_map) return {frame.type, frame.value};
    if (frame.type->kind == TypeKind::object_map) {
      return {&frame.type->element(), frame.type->place(frame.value, frame.key)};
    }
    if (frame.field == nullptr) return {};
    return {&frame.field->type(), frame.field->member(frame.value)};
  }

  static Slot engaged(Slot slot) {
    if (slot.type == nullptr || slot.type->kind != TypeKind::optional) return slot;
    return {&slot.type->element(), slot.type->append(slot.value)};
  }

  bool in_map() const {
    return !frames_.empty() && frames_.back().type->kind == TypeKind::string_map;
  }

  bool text(Slot slot, std::string_view value) {
    if (slot.type == nullptr) return true;
    switch (slot.type->kind) {
      case TypeKind::string:
        static_cast<std::string*>(slot.value)->assign(value);
        return true;
      case TypeKind::enumeration:
        for (std::size_t i = 0; i < slot.type->words.size(); ++i) {
          if (slot.type->words[i] == value) {
            slot.type->set_word(slot.value, i);
            return true;
          }
        }
        return refuse(fmt::format("expected one of {}, got \"{}\"",
                                  fmt::join(slot.type->words, ", "), shortened(value)));
      case TypeKind::duration: {
        const auto duration = parse_go_duration(value);
        if (!duration) return mismatch(*slot.type, fmt::format("\"{}\"", shortened(value)));
        *static_cast<Duration*>(slot.value) = *duration;
        return true;
      }
      case TypeKind::timestamp: {
        const auto time = parse_rfc3339(value);
        if (!time) return mismatch(*slot.type, fmt::format("\"{}\"", shortened(value)));
        *static_cast<TimePoint*>(slot.value) = *time;
        return true;
      }
      case TypeKind::presence:
        *static_cast<bool*>(slot.value) = true;
        return true;
      case TypeKind::string_map:
        if (!in_map()) break;
        if (slot.type->insert(slot.value, frames_.back().key, value)) return true;
        return refuse(fmt::format("expected a quantity, got \"{}\"", shortened(value)));
      default:
        break;
    }
    return mismatch(*slot.type, "string");
  }

  // A number where no plain integer fits: resource amounts may be written without quotes.
  bool number(Slot slot, const std::string& value) {
    if (slot.type->kind == TypeKind::presence) {
      *static_cast<bool*>(slot.value) = true;
      return true;
    }
    if (slot.type->kind == TypeKind::string_map && in_map() && slot.type->entry == nullptr) {
      return text(slot, value);
    }
    return mismatch(*slot.type, slot.type->kind == TypeKind::integer ? value : "number");
  }

  bool open(TypeKind kind) {
    // Within a map there are only texts.
    if (in_map()) {
      return refuse(fmt::format("expected string, got {}", wanted(kind)));
    }
    const Slot slot = engaged(next());
    if (slot.type == nullptr) {
      skip_ = 1;
      return true;
    }
    if (slot.type->kind == TypeKind::presence) {
      *static_cast<bool*>(slot.value) = true;
      skip_ = 1;
      return true;
    }
    const bool map =
        slot.type->kind == TypeKind::string_map || slot.type->kind == TypeKind::object_map;
    const bool fits = slot.type->kind == kind || (kind == TypeKind::object && map);
    if (!fits) return mismatch(*slot.type, wanted(kind));
    // What is given replaces a default list or map, and an earlier duplicate of the key.
    if (slot.type->kind != TypeKind::object) slot.type->clear(slot.value);
    frames_.push_back({slot.type, slot.value, nullptr, {}, 0});
    return true;
  }

  bool descend() {
    if (++depth_ <= kMaxJsonDepth) return true;
    error_ = fmt::format("nested deeper than {} levels", kMaxJsonDepth);
    return false;
  }

  bool close() {
    --depth_;
    if (skip_ > 0) {
      --skip_;
    } else {
      frames_.pop_back();
    }
    return true;
  }

  bool mismatch(const TypeInfo& type, std::string_view got) {
    return refuse(fmt::format("expected {}, got {}", in_map() ? "string" : wanted(type.kind), got));
  }

  // The path is known here only: frames are gone when the reader returns.
  bool refuse(std::string_view what) {
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.type->kind == TypeKind::list) {
        path += fmt::format("[{}]", frame.index == 0 ? 0 : frame.index - 1);
        continue;
      }
      const bool plain = frame.type->kind == TypeKind::object;
      path += plain ? fmt::format("{}{}", path.empty() ? "" : ".", frame.key)
                    : fmt::format("[{}]", shortened(frame.key));
    }
    error_ = path.empty() ? std::string{what} : fmt::format("{}: {}", path, what);
    return false;
  }

  const TypeInfo* root_type_;
  void* root_;
  std::vector<Frame> frames_;
  int depth_ = 0;
  int skip_ = 0;  // open objects and lists below an unknown key
  std::string error_;
};

}  // namespace

Result<void> decode_into(MutableJson json, const TypeInfo& type, void* out) {
  json.data[json.size] = '\0';
  Handler handler(type, out);
  rapidjson::InsituStringStream stream(json.data);
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag;
  const auto result = reader.Parse<kFlags>(stream, handler);
  if (result.IsError()) {
    if (!handler.error().empty()) return fail(ErrorCode::parse, handler.error());
    return fail(ErrorCode::parse, fmt::format("malformed JSON at byte {}: {}", result.Offset(),
                                              rapidjson::GetParseError_En(result.Code())));
  }
  if (stream.Tell() != json.size) {
    return fail(ErrorCode::parse,
                fmt::format("malformed JSON at byte {}: a NUL character", stream.Tell()));
  }
  return {};
}

}  // namespace kwatt::api
