#include "kube/json_stream.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>

namespace kwatt::kube {
namespace {

bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

Error too_deep(int depth) {
  return fail(ErrorCode::parse, fmt::format("JSON nested deeper than {}", depth));
}

Error too_large(std::size_t limit) {
  return fail(ErrorCode::parse, fmt::format("JSON object larger than {} bytes", limit));
}

}  // namespace

void ObjectScanner::reset() {
  depth_ = 0;
  started_ = in_string_ = escaped_ = too_deep_ = false;
}

std::size_t ObjectScanner::feed(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  const char* at = begin;
  while (at != end) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
        ++at;
        continue;
      }
      while (at != end && *at != '"' && *at != '\\') ++at;
      if (at == end) break;
      escaped_ = *at == '\\';
      in_string_ = escaped_;
      ++at;
      continue;
    }
    switch (*at++) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        started_ = true;
        if (++depth_ > max_depth_) {
          too_deep_ = true;
          return static_cast<std::size_t>(at - begin);
        }
        break;
      case '}':
      case ']':
        if (--depth_ == 0) return static_cast<std::size_t>(at - begin);
        break;
      default:
        break;
    }
  }
  return static_cast<std::size_t>(at - begin);
}

void FrameStream::push(std::string_view piece) {
  piece_ = piece;
}

Result<std::optional<std::string_view>> FrameStream::next() {
  if (handed_out_) {
    buffer_.clear();
    handed_out_ = false;
  }
  if (buffer_.empty()) {
    while (!piece_.empty() && is_space(piece_.front())) piece_.remove_prefix(1);
    if (piece_.empty()) return std::optional<std::string_view>{};
    if (piece_.front() != '{') return fail(ErrorCode::parse, "watch frame is not a JSON object");
    scanner_.reset();
  }
  const std::size_t used = scanner_.feed(piece_);
  if (scanner_.too_deep()) return too_deep(limits_.depth);
  if (buffer_.size() + used > limits_.object_bytes) return too_large(limits_.object_bytes);
  const std::string_view part = piece_.substr(0, used);
  piece_.remove_prefix(used);
  if (!scanner_.complete()) {
    buffer_.append(part);
    return std::optional<std::string_view>{};
  }
  if (buffer_.empty()) return std::optional<std::string_view>{part};
  buffer_.append(part);
  handed_out_ = true;
  return std::optional<std::string_view>{buffer_};
}

void ListStream::push(std::string_view piece) {
  piece_ = piece;
}

Result<std::optional<std::string_view>> ListStream::next() {
  if (handed_out_) {
    item_.clear();
    handed_out_ = false;
  }
  while (!piece_.empty()) {
    if (in_item_) return item_piece();
    const char byte = piece_.front();
    if (in_items_ && byte == '{') {
      scanner_.reset();
      in_item_ = true;
      continue;
    }
    piece_.remove_prefix(1);
    // Between the items only separators are allowed; they are not kept.
    if (in_items_ && byte != ']') {
      if (byte == ',' || is_space(byte)) continue;
      return fail(ErrorCode::parse, "an item of the list is not a JSON object");
    }
    if (auto done = envelope_byte(byte); !done) return done.error();
  }
  return std::optional<std::string_view>{};
}

Result<std::optional<std::string_view>> ListStream::item_piece() {
  const std::size_t used = scanner_.feed(piece_);
  if (scanner_.too_deep()) return too_deep(limits_.depth);
  if (item_.size() + used > limits_.object_bytes) return too_large(limits_.object_bytes);
  const std::string_view part = piece_.substr(0, used);
  piece_.remove_prefix(used);
  if (!scanner_.complete()) {
    item_.append(part);
    return std::optional<std::string_view>{};
  }
  in_item_ = false;
  if (item_.empty()) return std::optional<std::string_view>{part};
  item_.append(part);
  handed_out_ = true;
  return std::optional<std::string_view>{item_};
}

Result<void> ListStream::envelope_byte(char byte) {
  if (envelope_.size() >= limits_.envelope_bytes) return too_large(limits_.envelope_bytes);
  envelope_.push_back(byte);
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (byte == '\\') {
      escaped_ = true;
    } else if (byte == '"') {
      in_string_ = false;
      if (depth_ == 1) {
        last_key_ = envelope_.substr(string_start_, envelope_.size() - 1 - string_start_);
      }
    }
    return {};
  }
  switch (byte) {
    case '"':
      in_string_ = true;
      string_start_ = envelope_.size();
      break;
    case '[':
      if (depth_ == 1 && last_key_ == "items") {
        if (seen_items_) return fail(ErrorCode::parse, "list with two \"items\"");
        in_items_ = seen_items_ = true;
      }
      [[fallthrough]];
    case '{':
      if (++depth_ > limits_.depth) return too_deep(limits_.depth);
      break;
    case '}':
    case ']':
      --depth_;
      in_items_ = false;
      break;
    default:
      break;
  }
  return {};
}

Result<ListStream::Metadata> ListStream::finish() const {
  if (in_item_) return fail(ErrorCode::parse, "list ends inside an item");
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(envelope_.data(), envelope_.size());
  if (document.HasParseError() || !document.IsObject()) {
    return fail(ErrorCode::parse, "list is not a complete JSON object");
  }
  const auto items = document.FindMember("items");
  if (items == document.MemberEnd() || !(items->value.IsArray() || items->value.IsNull())) {
    return fail(ErrorCode::parse, "answer to a list has no items");
  }
  Metadata found;
  const auto metadata = document.FindMember("metadata");
  if (metadata != document.MemberEnd() && metadata->value.IsObject()) {
    const auto text = [&](const char* key) -> std::string {
      const auto member = metadata->value.FindMember(key);
      if (member == metadata->value.MemberEnd() || !member->value.IsString()) return {};
      return {member->value.GetString(), member->value.GetStringLength()};
    };
    found.resource_version = text("resourceVersion");
    found.continue_token = text("continue");
  }
  return found;
}

}  // namespace kwatt::kube
