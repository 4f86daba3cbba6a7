#pragma once
// JSON from machines' controllers: foreign bytes, read with accessors that never assert.
// Includes RapidJSON: for .cpp files only.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/document.h>

#include "base/result.hpp"

namespace kwatt::hardware {

// Parses one document, nested at most 64 deep. Errors: parse, with the place and the beginning of
// the text as server_text.
Result<rapidjson::Document> parse_json(std::string_view text);

// The value at a path of object keys; nullptr: absent, or something on the way is not an object.
const rapidjson::Value* find(const rapidjson::Value& root,
                             std::initializer_list<std::string_view> path);
// The first element of the list at the path; nullptr: absent, not a list, or empty.
const rapidjson::Value* first(const rapidjson::Value& root,
                              std::initializer_list<std::string_view> path);
// "" if it is absent or not a string.
std::string_view text_at(const rapidjson::Value& root,
                         std::initializer_list<std::string_view> path);
// A finite number; nullopt if it is absent, null or something else.
std::optional<double> number_at(const rapidjson::Value& root,
                                std::initializer_list<std::string_view> path);

}  // namespace kwatt::hardware
