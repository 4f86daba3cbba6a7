#pragma once
// RapidJSON's writer with our habits. Includes RapidJSON: for .cpp files only.
#include <string>
#include <string_view>

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "api/type_info.hpp"

namespace kwatt::api {

class JsonWriter {
 public:
  JsonWriter& begin() {
    writer_.StartObject();
    return *this;
  }
  JsonWriter& begin(std::string_view key) {
    this->key(key);
    return begin();
  }
  JsonWriter& end() {
    writer_.EndObject();
    return *this;
  }
  JsonWriter& begin_list(std::string_view key) {
    this->key(key);
    writer_.StartArray();
    return *this;
  }
  JsonWriter& begin_list() {
    writer_.StartArray();
    return *this;
  }
  JsonWriter& end_list() {
    writer_.EndArray();
    return *this;
  }
  JsonWriter& key(std::string_view key) {
    writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    return *this;
  }
  JsonWriter& text(std::string_view value) {
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    return *this;
  }
  JsonWriter& integer(std::int64_t value) {
    writer_.Int64(value);
    return *this;
  }
  JsonWriter& boolean(bool value) {
    writer_.Bool(value);
    return *this;
  }
  JsonWriter& null() {
    writer_.Null();
    return *this;
  }
  // JSON text that is already well-formed.
  JsonWriter& raw(std::string_view json) {
    writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType);
    return *this;
  }
  JsonWriter& text(std::string_view key, std::string_view value) {
    return this->key(key).text(value);
  }
  JsonWriter& text_unless_empty(std::string_view key, std::string_view value) {
    return value.empty() ? *this : text(key, value);
  }
  // Any described value.
  JsonWriter& value(const TypeInfo& type, const void* value);

  std::string take() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace kwatt::api
