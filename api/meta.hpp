#pragma once
// What all Kubernetes objects share: metadata, conditions, selectors. Values only, no I/O.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace kwatt::api {

// A small sorted map of strings (labels, annotations): one allocation, not one per entry.
class StringMap {
 public:
  using Entry = std::pair<std::string, std::string>;
  StringMap() = default;
  StringMap(std::initializer_list<Entry> entries) {
    for (const Entry& e : entries) set(e.first, e.second);
  }
  const std::string* find(std::string_view key) const;  // nullptr: absent
  std::string_view get(std::string_view key) const;     // "": absent
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  void set(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const StringMap&) const = default;
  auto operator<=>(const StringMap&) const = default;
  // The value slot of `key`, inserted if absent; for decoders.
  std::string& slot(std::string_view key);

 private:
  std::vector<Entry> entries_;  // sorted by key
};

struct OwnerReference {
  std::string kind, name, uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name;
  std::string namespace_name;  // "" for cluster-scoped objects
  std::string uid;
  std::string resource_version;  // opaque: passed back unchanged, compared for equality only
  std::int64_t generation = 0;
  std::optional<TimePoint> creation_timestamp;
  std::optional<TimePoint> deletion_timestamp;
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;
  bool operator==(const ObjectMeta&) const = default;
};

// metav1.Condition. `status` is "True", "False" or "Unknown".
struct Condition {
  std::string type, status, reason, message;
  std::int64_t observed_generation = 0;
  std::optional<TimePoint> last_transition_time;
  bool operator==(const Condition&) const = default;
};

// Sets or adds `next` in `conditions` by type, as apimachinery's SetStatusCondition does:
// lastTransitionTime becomes `now` only if the status changed. True if anything changed.
bool set_condition(std::vector<Condition>& conditions, Condition next, TimePoint now);
const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);

// One requirement of a LabelSelector or of node affinity (Gt and Lt only there).
struct SelectorRequirement {
  std::string key;
  std::string op;  // In NotIn Exists DoesNotExist Gt Lt
  std::vector<std::string> values;
  bool operator==(const SelectorRequirement&) const = default;
};

// metav1.LabelSelector; empty matches everything.
struct LabelSelector {
  StringMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
  bool empty() const { return match_labels.empty() && match_expressions.empty(); }
  bool operator==(const LabelSelector&) const = default;
};

struct SecretReference {
  std::string name;  // in the controller's own namespace
  bool operator==(const SecretReference&) const = default;
};

bool matches(const SelectorRequirement& requirement, const StringMap& labels);
bool matches(const LabelSelector& selector, const StringMap& labels);

}  // namespace kwatt::api
