#pragma once
// A runtime description of our types: one table per struct (describe_*.hpp) from which the decoder,
// the encoder and the test that compares the C++ types with the CRDs all work.
//
//   const TypeInfo& t = type_of<EnergyPolicySpec>();
//   for (const FieldInfo& f : t.fields) f.name, f.type(), f.member(&spec) ...
//
// A TypeInfo is static and immutable; `void*` arguments must point to an object of that very type.
#include <cstdint>
#include <span>
#include <string_view>

namespace kwatt::api {

enum class TypeKind : std::uint8_t {
  boolean,      // bool
  integer,      // std::int64_t
  string,       // std::string
  enumeration,  // an enum class; on the wire one of `words`
  duration,     // kwatt::Duration; on the wire as Go writes it
  timestamp,    // kwatt::TimePoint; on the wire RFC 3339
  object,       // a struct with `fields`
  list,         // std::vector of `element`
  string_map,   // keys and text values, through `insert` and `each`
  object_map,   // std::map of `element` by key, through `place` and `placed`
  presence,     // bool: true as soon as the key has any value but null; decode only
  optional,     // std::optional of `element`
};

// What an encoder does with a member that says nothing: false, 0, "", an empty list or object.
enum class Omit : std::uint8_t {
  never,       // spec: written even then, so that a reader sees every setting
  when_empty,  // status and metadata: left out, as Go's omitempty does
};

struct TypeInfo;

struct FieldInfo {
  std::string_view name;      // the JSON key
  const TypeInfo& (*type)();  // a function, because types refer to each other
  void* (*member)(void* object);
  Omit omit = Omit::when_empty;
};

struct TypeInfo {
  TypeKind kind;
  std::string_view name;              // of an object: the C++ struct
  std::span<const FieldInfo> fields;  // object
  const TypeInfo& (*element)();       // list, optional, object_map

  std::span<const std::string_view> words;           // enumeration, in the order of its values
  std::size_t (*word_index)(const void* value);      // enumeration
  void (*set_word)(void* value, std::size_t index);  // enumeration

  void (*clear)(void* value);              // list, string_map, object_map, optional: make it empty
  void* (*append)(void* value);            // list: a new element; optional: engage
  std::size_t (*size)(const void* value);  // list, maps, optional (0 or 1)
  void* (*at)(void* value, std::size_t index);                               // list, optional
  bool (*insert)(void* value, std::string_view key, std::string_view text);  // string_map
  // string_map: entry `index`; null for maps that are only decoded.
  void (*entry)(const void* value, std::size_t index, std::string_view& key,
                std::string_view& text);

  void* (*place)(void* value, std::string_view key) = nullptr;  // object_map: the element of a key
  // object_map: element `index` in the order of the keys.
  void* (*placed)(void* value, std::size_t index, std::string_view& key) = nullptr;

  std::string_view api_version = {};  // of a top-level object, e.g. "kwatt.dev/v1alpha1"
  std::string_view object_kind = {};  // of a top-level object, e.g. "EnergyPolicy"
};

// Defined for every described type in one of api/describe_*.cpp.
template <class T>
const TypeInfo& type_of();

// True if the value says nothing (see Omit); objects: all their members say nothing.
bool is_empty(const TypeInfo& type, const void* value);

}  // namespace kwatt::api
