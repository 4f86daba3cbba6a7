// Selectors, tolerations, conditions, the string map and the list of reasons.
#include <doctest/doctest.h>

#include "api/core.hpp"
#include "api/meta.hpp"
#include "api/reason.hpp"

namespace kwatt::api {
namespace {

TEST_CASE("a string map keeps its entries sorted by key, whatever the order they came in") {
  StringMap map;
  for (const char* key : {"m", "a", "z", "m", "b"}) map.set(key, key);
  map.set("a", "again");
  std::string keys;
  for (const auto& [key, value] : map) keys += key;
  CHECK(keys == "abmz");
  CHECK(map.get("a") == "again");
  CHECK(map.get("none") == "");
  CHECK_FALSE(map.contains("none"));
  map.erase("b");
  map.erase("none");
  CHECK(map.size() == 3);
  CHECK(map == StringMap{{"z", "z"}, {"m", "m"}, {"a", "again"}});
}

TEST_CASE("a selector requirement matches as Kubernetes' does") {
  const StringMap labels{{"zone", "a"}, {"cpus", "8"}, {"empty", ""}};
  struct Case {
    const char* name;
    SelectorRequirement requirement;
    bool want;
  };
  const Case cases[] = {
      {"In, listed", {"zone", "In", {"b", "a"}}, true},
      {"In, not listed", {"zone", "In", {"b"}}, false},
      {"In, absent", {"none", "In", {""}}, false},
      {"In, empty value", {"empty", "In", {""}}, true},
      {"NotIn, listed", {"zone", "NotIn", {"a"}}, false},
      {"NotIn, not listed", {"zone", "NotIn", {"b"}}, true},
      {"NotIn, absent matches", {"none", "NotIn", {"a"}}, true},
      {"Exists", {"zone", "Exists", {}}, true},
      {"Exists, absent", {"none", "Exists", {}}, false},
      {"DoesNotExist", {"zone", "DoesNotExist", {}}, false},
      {"DoesNotExist, absent", {"none", "DoesNotExist", {}}, true},
      {"Gt", {"cpus", "Gt", {"7"}}, true},
      {"Gt, equal", {"cpus", "Gt", {"8"}}, false},
      {"Gt, as numbers", {"cpus", "Gt", {"10"}}, false},
      {"Lt", {"cpus", "Lt", {"10"}}, true},
      {"Lt, equal", {"cpus", "Lt", {"8"}}, false},
      {"Lt, not a number", {"zone", "Lt", {"8"}}, false},
      {"Gt, absent", {"none", "Gt", {"8"}}, false},
      {"Gt, two values", {"cpus", "Gt", {"1", "2"}}, false},
      {"unknown operator", {"zone", "Like", {"a"}}, false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(matches(c.requirement, labels) == c.want);
  }
}

TEST_CASE("a label selector needs all of its parts; an empty one matches everything") {
  const StringMap labels{{"app", "web"}, {"tier", "front"}};
  CHECK(matches(LabelSelector{}, labels));
  CHECK(matches(LabelSelector{}, StringMap{}));
  CHECK(matches(LabelSelector{{{"app", "web"}}, {{"tier", "Exists", {}}}}, labels));
  CHECK_FALSE(matches(LabelSelector{{{"app", "web"}}, {{"tier", "NotIn", {"front"}}}}, labels));
  CHECK_FALSE(matches(LabelSelector{{{"app", "db"}}, {}}, labels));
}

TEST_CASE("a toleration tolerates as in the core API") {
  const Taint taint{"dedicated", "gpu", "NoSchedule", std::nullopt};
  struct Case {
    const char* name;
    Toleration toleration;
    bool want;
  };
  const Case cases[] = {
      {"equal", {"dedicated", "Equal", "gpu", "NoSchedule", {}}, true},
      {"an empty operator is Equal", {"dedicated", "", "gpu", "NoSchedule", {}}, true},
      {"another value", {"dedicated", "Equal", "cpu", "NoSchedule", {}}, false},
      {"Exists ignores the value", {"dedicated", "Exists", "", "NoSchedule", {}}, true},
      {"an empty effect is all effects", {"dedicated", "Exists", "", "", {}}, true},
      {"another effect", {"dedicated", "Exists", "", "NoExecute", {}}, false},
      {"another key", {"other", "Exists", "", "", {}}, false},
      {"no key with Exists is everything", {"", "Exists", "", "", {}}, true},
      {"no key with Exists, another effect", {"", "Exists", "", "NoExecute", {}}, false},
      {"no key with Equal is nothing", {"", "Equal", "gpu", "", {}}, false},
      {"an unknown operator", {"dedicated", "Like", "gpu", "", {}}, false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(tolerates({c.toleration}, taint) == c.want);
  }
  CHECK_FALSE(tolerates({}, taint));
  const Taint memory{"free-gib", "16", "NoSchedule", std::nullopt};
  CHECK(tolerates({{"free-gib", "Gt", "8", "", {}}}, memory));
  CHECK_FALSE(tolerates({{"free-gib", "Lt", "8", "", {}}}, memory));
}

TEST_CASE("a condition's transition time moves only with its status") {
  const TimePoint start{std::chrono::hours{1000}};
  const TimePoint later = start + std::chrono::minutes{5};
  std::vector<Condition> conditions;
  CHECK(set_condition(conditions, {"Ready", "Unknown", "Starting", "", 1, {}}, start));
  CHECK(conditions.front().last_transition_time == start);

  INFO("the same again changes nothing");
  CHECK_FALSE(set_condition(conditions, {"Ready", "Unknown", "Starting", "", 1, {}}, later));
  CHECK(conditions.front().last_transition_time == start);

  INFO("reason, message and generation change without a transition");
  CHECK(set_condition(conditions, {"Ready", "Unknown", "Waiting", "for caches", 2, {}}, later));
  CHECK(conditions.front().reason == "Waiting");
  CHECK(conditions.front().observed_generation == 2);
  CHECK(conditions.front().last_transition_time == start);

  INFO("a new status is a transition");
  CHECK(set_condition(conditions, {"Ready", "True", "Running", "", 2, {}}, later));
  CHECK(conditions.front().last_transition_time == later);

  CHECK(set_condition(conditions, {"Halted", "False", "Fine", "", 2, {}}, later));
  CHECK(conditions.size() == 2);
  CHECK(find_condition(conditions, "Halted")->reason == "Fine");
  CHECK(find_condition(conditions, "None") == nullptr);
}

TEST_CASE("each reason is its own word") {
  CHECK(parse_reason("PDBBlocked") == Reason::PDBBlocked);
  CHECK(to_string(Reason::PDBBlocked) == "PDBBlocked");
  CHECK_FALSE(parse_reason("pdbblocked").has_value());
  CHECK_FALSE(parse_reason("").has_value());
  for (int i = 0; i <= static_cast<int>(Reason::Conflict); ++i) {
    const auto reason = static_cast<Reason>(i);
    CHECK(parse_reason(to_string(reason)) == reason);
  }
}

}  // namespace
}  // namespace kwatt::api
