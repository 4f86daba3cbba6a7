#pragma once
// How a type gets its TypeInfo. A struct declares its JSON fields once:
//
//   template <>
//   struct Describe<CapRange> {
//     static constexpr std::string_view name = "CapRange";
//     static constexpr auto fields = std::array{written<&CapRange::min_watts>("minWatts"),
//                                               written<&CapRange::max_watts>("maxWatts")};
//   };
//
// and an enum its words, in the order of its values. Only the tables (describe_*.hpp) and the
// .cpp files that instantiate type_of<T>() for a top-level type include this header.
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/member_count.hpp"
#include "api/meta.hpp"
#include "api/type_info.hpp"
#include "base/time.hpp"

namespace kwatt::api {

template <class T>
struct Describe;  // specialize for structs: name, fields
template <class E>
struct Words;  // specialize for enums: static constexpr std::array<std::string_view, N> words

template <class E>
constexpr std::string_view word_of(E value) {
  return Words<E>::words[static_cast<std::size_t>(value)];
}

namespace describe {

template <class T>
struct MemberOf;
template <class C, class M>
struct MemberOf<M C::*> {
  using Class = C;
  using Member = M;
};

template <class T>
struct VectorOf : std::false_type {};
template <class E>
struct VectorOf<std::vector<E>> : std::true_type {
  using Element = E;
};
template <class T>
struct MapOf : std::false_type {};
template <class E>
struct MapOf<std::map<std::string, E>> : std::true_type {
  using Element = E;
};
template <class T>
struct OptionalOf : std::false_type {};
template <class E>
struct OptionalOf<std::optional<E>> : std::true_type {
  using Element = E;
};

template <class T>
T& as(void* value) {
  return *static_cast<T*>(value);
}
template <class T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

constexpr TypeInfo scalar(TypeKind kind) {
  TypeInfo info{};
  info.kind = kind;
  return info;
}

template <class E>
constexpr TypeInfo enumeration() {
  TypeInfo info = scalar(TypeKind::enumeration);
  info.words = Words<E>::words;
  info.word_index = [](const void* v) { return static_cast<std::size_t>(as<E>(v)); };
  info.set_word = [](void* v, std::size_t index) { as<E>(v) = static_cast<E>(index); };
  return info;
}

template <class T>
constexpr TypeInfo list() {
  TypeInfo info = scalar(TypeKind::list);
  info.element = &type_of<typename VectorOf<T>::Element>;
  info.clear = [](void* v) { as<T>(v).clear(); };
  info.append = [](void* v) -> void* { return &as<T>(v).emplace_back(); };
  info.size = [](const void* v) { return as<T>(v).size(); };
  info.at = [](void* v, std::size_t index) -> void* { return &as<T>(v)[index]; };
  return info;
}

template <class T>
constexpr TypeInfo object_map() {
  TypeInfo info = scalar(TypeKind::object_map);
  info.element = &type_of<typename MapOf<T>::Element>;
  info.clear = [](void* v) { as<T>(v).clear(); };
  info.size = [](const void* v) { return as<T>(v).size(); };
  info.place = [](void* v, std::string_view key) -> void* { return &as<T>(v)[std::string(key)]; };
  info.placed = [](void* v, std::size_t index, std::string_view& key) -> void* {
    auto& entry = *std::next(as<T>(v).begin(), static_cast<std::ptrdiff_t>(index));
    key = entry.first;
    return &entry.second;
  };
  return info;
}

template <class T>
constexpr TypeInfo optional() {
  TypeInfo info = scalar(TypeKind::optional);
  info.element = &type_of<typename OptionalOf<T>::Element>;
  info.clear = [](void* v) { as<T>(v).reset(); };
  info.append = [](void* v) -> void* { return &as<T>(v).emplace(); };
  info.size = [](const void* v) { return std::size_t{as<T>(v).has_value()}; };
  info.at = [](void* v, std::size_t) -> void* { return &*as<T>(v); };
  return info;
}

constexpr TypeInfo string_map() {
  TypeInfo info = scalar(TypeKind::string_map);
  info.clear = [](void* v) { as<StringMap>(v) = {}; };
  info.size = [](const void* v) { return as<StringMap>(v).size(); };
  info.insert = [](void* v, std::string_view key, std::string_view text) {
    as<StringMap>(v).set(key, text);
    return true;
  };
  info.entry = [](const void* v, std::size_t index, std::string_view& key, std::string_view& text) {
    const auto& e = *(as<StringMap>(v).begin() + static_cast<std::ptrdiff_t>(index));
    key = e.first;
    text = e.second;
  };
  return info;
}

template <class T>
constexpr TypeInfo object() {
  TypeInfo info = scalar(TypeKind::object);
  static_assert(member_count<T>() == Describe<T>::fields.size(),
                "a member of this struct has no row in its table (describe_*.cpp), or no schema");
  info.name = Describe<T>::name;
  info.fields = Describe<T>::fields;
  if constexpr (requires { Describe<T>::object_kind; }) {
    info.api_version = Describe<T>::api_version;
    info.object_kind = Describe<T>::object_kind;
  }
  return info;
}

template <class T>
constexpr TypeInfo make() {
  // Types with rules of their own (a filtered map, a resource list) bring their TypeInfo along.
  if constexpr (requires { T::type_info(); })
    return T::type_info();
  else if constexpr (std::is_same_v<T, bool>)
    return scalar(TypeKind::boolean);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return scalar(TypeKind::integer);
  else if constexpr (std::is_same_v<T, std::string>)
    return scalar(TypeKind::string);
  else if constexpr (std::is_same_v<T, Duration>)
    return scalar(TypeKind::duration);
  else if constexpr (std::is_same_v<T, TimePoint>)
    return scalar(TypeKind::timestamp);
  else if constexpr (std::is_same_v<T, StringMap>)
    return string_map();
  else if constexpr (std::is_enum_v<T>)
    return enumeration<T>();
  else if constexpr (VectorOf<T>::value)
    return list<T>();
  else if constexpr (MapOf<T>::value)
    return object_map<T>();
  else if constexpr (OptionalOf<T>::value)
    return optional<T>();
  else
    return object<T>();
}

}  // namespace describe

template <class T>
const TypeInfo& type_of() {
  static constexpr TypeInfo info = describe::make<T>();
  return info;
}

// One row of a table. `As` describes the member as another type of the same layout.
template <auto Member, class As = typename describe::MemberOf<decltype(Member)>::Member>
constexpr FieldInfo field(std::string_view json_name, Omit omit = Omit::when_empty) {
  using Class = typename describe::MemberOf<decltype(Member)>::Class;
  return FieldInfo{json_name, &type_of<As>,
                   [](void* object) -> void* { return &(describe::as<Class>(object).*Member); },
                   omit};
}

// The same for a member that is written even when it says nothing.
template <auto Member>
constexpr FieldInfo written(std::string_view json_name) {
  return field<Member>(json_name, Omit::never);
}

}  // namespace kwatt::api
