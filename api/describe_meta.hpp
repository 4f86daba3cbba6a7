#pragma once
// Tables of what all objects share. Included by the other tables.
#include "api/describe.hpp"

namespace kwatt::api {

// Annotations as we keep them: without kubectl's copy of the whole object, which can be as large
// as the object itself.
struct KeptAnnotations {
  static constexpr std::string_view kDropped = "kubectl.kubernetes.io/last-applied-configuration";
  static constexpr TypeInfo type_info() {
    TypeInfo info = describe::string_map();
    info.insert = [](void* v, std::string_view key, std::string_view text) {
      if (key != kDropped) describe::as<StringMap>(v).set(key, text);
      return true;
    };
    return info;
  }
};

template <>
struct Describe<OwnerReference> {
  static constexpr std::string_view name = "OwnerReference";
  static constexpr auto fields = std::array{
      field<&OwnerReference::kind>("kind"), field<&OwnerReference::name>("name"),
      field<&OwnerReference::uid>("uid"), field<&OwnerReference::controller>("controller")};
};

template <>
struct Describe<ObjectMeta> {
  static constexpr std::string_view name = "ObjectMeta";
  static constexpr auto fields =
      std::array{field<&ObjectMeta::name>("name"),
                 field<&ObjectMeta::namespace_name>("namespace"),
                 field<&ObjectMeta::uid>("uid"),
                 field<&ObjectMeta::resource_version>("resourceVersion"),
                 field<&ObjectMeta::generation>("generation"),
                 field<&ObjectMeta::creation_timestamp>("creationTimestamp"),
                 field<&ObjectMeta::deletion_timestamp>("deletionTimestamp"),
                 field<&ObjectMeta::labels>("labels"),
                 field<&ObjectMeta::annotations, KeptAnnotations>("annotations"),
                 field<&ObjectMeta::finalizers>("finalizers"),
                 field<&ObjectMeta::owner_references>("ownerReferences")};
};

// The API conventions require all of a condition but observedGeneration.
template <>
struct Describe<Condition> {
  static constexpr std::string_view name = "Condition";
  static constexpr auto fields =
      std::array{written<&Condition::type>("type"),
                 written<&Condition::status>("status"),
                 written<&Condition::reason>("reason"),
                 written<&Condition::message>("message"),
                 field<&Condition::observed_generation>("observedGeneration"),
                 field<&Condition::last_transition_time>("lastTransitionTime")};
};

template <>
struct Describe<SelectorRequirement> {
  static constexpr std::string_view name = "SelectorRequirement";
  static constexpr auto fields = std::array{field<&SelectorRequirement::key>("key"),
                                            field<&SelectorRequirement::op>("operator"),
                                            field<&SelectorRequirement::values>("values")};
};

template <>
struct Describe<LabelSelector> {
  static constexpr std::string_view name = "LabelSelector";
  static constexpr auto fields =
      std::array{field<&LabelSelector::match_labels>("matchLabels"),
                 field<&LabelSelector::match_expressions>("matchExpressions")};
};

template <>
struct Describe<SecretReference> {
  static constexpr std::string_view name = "SecretReference";
  static constexpr auto fields = std::array{written<&SecretReference::name>("name")};
};

}  // namespace kwatt::api
