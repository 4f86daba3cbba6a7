#include "hardware/json.hpp"

#include <cmath>

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include "hardware/excerpt.hpp"

namespace kwatt::hardware {
namespace {

constexpr int kDeepest = 64;

// Brackets outside strings; whether the text is JSON at all is for the parser to say.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<rapidjson::Document> parse_json(std::string_view text) {
  if (too_deep(text)) {
    return fail(ErrorCode::parse, fmt::format("JSON nested more than {} deep", kDeepest));
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      text.data(), text.size());
  if (document.HasParseError()) {
    return fail(ErrorCode::parse,
                fmt::format("not JSON at byte {}: {}", document.GetErrorOffset(),
                            rapidjson::GetParseError_En(document.GetParseError())),
                excerpt(text));
  }
  return document;
}

const rapidjson::Value* find(const rapidjson::Value& root,
                             std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = &root;
  for (const std::string_view key : path) {
    if (!value->IsObject()) return nullptr;
    const auto member =
        value->FindMember(rapidjson::Value(rapidjson::StringRef(key.data(), key.size())));
    if (member == value->MemberEnd()) return nullptr;
    value = &member->value;
  }
  return value;
}

const rapidjson::Value* first(const rapidjson::Value& root,
                              std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = find(root, path);
  return value != nullptr && value->IsArray() && !value->Empty() ? &(*value)[0] : nullptr;
}

std::string_view text_at(const rapidjson::Value& root,
                         std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = find(root, path);
  if (value == nullptr || !value->IsString()) return {};
  return {value->GetString(), value->GetStringLength()};
}

std::optional<double> number_at(const rapidjson::Value& root,
                                std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = find(root, path);
  if (value == nullptr || !value->IsNumber()) return std::nullopt;
  const double number = value->GetDouble();
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace kwatt::hardware
