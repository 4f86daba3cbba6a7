#include "api/meta.hpp"

#include <algorithm>
#include <charconv>

namespace kwatt::api {
namespace {

template <class Entries>
auto lower_bound_of(Entries& entries, std::string_view key) {
  return std::lower_bound(entries.begin(), entries.end(), key,
                          [](const auto& entry, std::string_view k) { return entry.first < k; });
}

// A whole decimal integer, as Kubernetes demands of both sides of Gt and Lt.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool compares(const SelectorRequirement& requirement, std::string_view label, bool greater) {
  if (requirement.values.size() != 1) return false;
  const auto left = parse_integer(label);
  const auto right = parse_integer(requirement.values.front());
  if (!left || !right) return false;
  return greater ? *left > *right : *left < *right;
}

}  // namespace

const std::string* StringMap::find(std::string_view key) const {
  const auto at = lower_bound_of(entries_, key);
  return at != entries_.end() && at->first == key ? &at->second : nullptr;
}

std::string_view StringMap::get(std::string_view key) const {
  const std::string* value = find(key);
  return value == nullptr ? std::string_view{} : std::string_view{*value};
}

std::string& StringMap::slot(std::string_view key) {
  // Kubernetes serves maps sorted, so appending is the usual case.
  if (entries_.empty() || entries_.back().first < key) {
    return entries_.emplace_back(std::string{key}, std::string{}).second;
  }
  auto at = lower_bound_of(entries_, key);
  if (at->first != key) at = entries_.insert(at, Entry{std::string{key}, std::string{}});
  return at->second;
}

void StringMap::set(std::string_view key, std::string_view value) {
  slot(key) = value;
}

void StringMap::erase(std::string_view key) {
  const auto at = lower_bound_of(entries_, key);
  if (at != entries_.end() && at->first == key) entries_.erase(at);
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto at = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& c) { return c.type == type; });
  return at == conditions.end() ? nullptr : &*at;
}

bool set_condition(std::vector<Condition>& conditions, Condition next, TimePoint now) {
  const auto at = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& c) { return c.type == next.type; });
  if (at == conditions.end()) {
    if (!next.last_transition_time) next.last_transition_time = now;
    conditions.push_back(std::move(next));
    return true;
  }
  if (at->status == next.status) {
    next.last_transition_time = at->last_transition_time;
  } else if (!next.last_transition_time) {
    next.last_transition_time = now;
  }
  if (*at == next) return false;
  *at = std::move(next);
  return true;
}

bool matches(const SelectorRequirement& requirement, const StringMap& labels) {
  const std::string* label = labels.find(requirement.key);
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *label) !=
           requirement.values.end();
  };
  if (requirement.op == "In") return label != nullptr && listed();
  if (requirement.op == "NotIn") return label == nullptr || !listed();
  if (requirement.op == "Exists") return label != nullptr;
  if (requirement.op == "DoesNotExist") return label == nullptr;
  if (requirement.op == "Gt") return label != nullptr && compares(requirement, *label, true);
  if (requirement.op == "Lt") return label != nullptr && compares(requirement, *label, false);
  return false;  // an operator we do not know matches nothing: the stricter reading
}

bool matches(const LabelSelector& selector, const StringMap& labels) {
  for (const auto& [key, value] : selector.match_labels) {
    const std::string* label = labels.find(key);
    if (label == nullptr || *label != value) return false;
  }
  return std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&](const SelectorRequirement& r) { return matches(r, labels); });
}

}  // namespace kwatt::api
