// One source of truth: the C++ types and crds/*.yaml say the same, field by field.
#include <algorithm>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "api/decode.hpp"
#include "api/energy_policy.hpp"
#include "api/estimator.hpp"
#include "api/node_power.hpp"
#include "api/site_recommendation.hpp"
#include "api/words.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::api {
namespace {

YAML::Node load(const std::string& file) {
  return YAML::LoadFile(test::source_path("crds/" + file))["spec"]["versions"][0];
}

std::string text_of(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.Scalar() : "";
}

std::set<std::string> texts_of(const YAML::Node& list) {
  std::set<std::string> out;
  for (const YAML::Node& entry : list) out.insert(text_of(entry));
  return out;
}

// Does the default in the YAML say what the C++ value is? Objects may name some members only.
void check_default(const YAML::Node& given, const TypeInfo& type, void* value,
                   const std::string& path) {
  CAPTURE(path);
  switch (type.kind) {
    case TypeKind::boolean:
      CHECK(given.as<bool>() == *static_cast<bool*>(value));
      break;
    case TypeKind::integer:
      CHECK(given.as<std::int64_t>() == *static_cast<std::int64_t*>(value));
      break;
    case TypeKind::string:
      CHECK(text_of(given) == *static_cast<std::string*>(value));
      break;
    case TypeKind::enumeration:
      CHECK(text_of(given) == type.words[type.word_index(value)]);
      break;
    case TypeKind::duration:
      CHECK(parse_go_duration(text_of(given)) == *static_cast<Duration*>(value));
      break;
    case TypeKind::list:
      REQUIRE(given.size() == type.size(value));
      for (std::size_t i = 0; i < given.size(); ++i) {
        check_default(given[i], type.element(), type.at(value, i), path + "[]");
      }
      break;
    case TypeKind::object:
      for (const auto& entry : given) {
        const std::string name = entry.first.Scalar();
        const auto field = std::find_if(type.fields.begin(), type.fields.end(),
                                        [&](const FieldInfo& f) { return f.name == name; });
        REQUIRE(field != type.fields.end());
        check_default(entry.second, field->type(), field->member(value),
                      fmt::format("{}.{}", path, name));
      }
      break;
    default:
      FAIL("a default of this kind is not known here");
  }
}

std::string wanted_type(TypeKind kind) {
  switch (kind) {
    case TypeKind::boolean:
      return "boolean";
    case TypeKind::integer:
      return "integer";
    case TypeKind::object:
    case TypeKind::string_map:
    case TypeKind::object_map:
      return "object";
    case TypeKind::list:
      return "array";
    default:
      return "string";
  }
}

// Strings of a closed list, by their path.
const std::map<std::string, std::set<std::string>> kClosedStrings = [] {
  const auto set = [](const auto& words) {
    return std::set<std::string>(words.begin(), words.end());
  };
  const auto set_with_none = [&](const auto& words) {
    auto out = set(words);
    out.insert("");
    return out;
  };
  const auto governors = set_with_none(kGovernors);
  return std::map<std::string, std::set<std::string>>{
      {"spec.dvfs.low.governor", governors},
      {"spec.dvfs.high.governor", governors},
      {"spec.nodeSelector.matchExpressions[].operator", set(kSelectorOperators)},
      {"spec.disruption.budgets[].reasons[]", set(kBudgetReasons)},
      {"spec.defaultNodeConfig.nodeMonitor.agents[].type", set(kAgentTypes)},
      {"spec.nodeConfigOverrides[].nodeMonitor.agents[].type", set(kAgentTypes)},
      {"spec.defaultNodeConfig.powerConsumptionPredictor.type", set(kPredictorTypes)},
      {"spec.nodeConfigOverrides[].powerConsumptionPredictor.type", set(kPredictorTypes)},
      {"spec.siteSelector.matchExpressions[].operator", set(kSelectorOperators)},
      {"spec.affinity.siteSelector.matchExpressions[].operator", set(kSelectorOperators)},
      {"spec.tolerations[].effect", set(kToleratedEffects)},
      {"spec.weights[].plugin", set_with_none(kSiteScorers)},
      {"status.conditions[].status", {"True", "False", "Unknown"}}};
}();

// YAML 1.1, which kubectl reads, takes a bare True or on for a boolean; yaml-cpp does not.
void check_quoted(const YAML::Node& scalar) {
  static const std::set<std::string> kBooleans{"true", "false", "on", "off", "yes", "no", "y", "n"};
  std::string word = scalar.Scalar();
  CAPTURE(word);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  CHECK((scalar.Tag() == "!" || kBooleans.count(word) == 0));
}

class Walk {
 public:
  // `value` is a default-made object of the type. It is changed: lists get an element to look at.
  void compare(const YAML::Node& schema, const TypeInfo& type, void* value,
               const std::string& path) {
    CAPTURE(path);
    ++fields_;
    if (type.kind == TypeKind::optional) {
      compare(schema, type.element(), type.append(value), path);
      return;
    }
    CHECK(text_of(schema["type"]) == wanted_type(type.kind));
    CHECK(text_of(schema["description"]).size() > 3);
    for (const YAML::Node& word : schema["enum"]) check_quoted(word);
    for (const auto& entry : schema["properties"]) check_quoted(entry.first);
    for (const YAML::Node& rule : schema["x-kubernetes-validations"]) {
      CHECK(text_of(rule["message"]).size() > 10);
    }
    if (type.kind == TypeKind::integer) CHECK(text_of(schema["format"]) == "int64");
    if (type.kind == TypeKind::timestamp) CHECK(text_of(schema["format"]) == "date-time");
    if (type.kind == TypeKind::duration) CHECK(text_of(schema["pattern"]).size() > 10);
    if (type.kind == TypeKind::enumeration) {
      CHECK(texts_of(schema["enum"]) ==
            std::set<std::string>(type.words.begin(), type.words.end()));
    } else if (const auto closed = kClosedStrings.find(path); closed != kClosedStrings.end()) {
      CHECK(texts_of(schema["enum"]) == closed->second);
    } else {
      CHECK_FALSE(schema["enum"]);
    }
    if (type.kind == TypeKind::object) compare_members(schema, type, value, path);
    if (type.kind == TypeKind::list) {
      // Lists under CEL rules or in status must be bounded, or the API server's cost limit bites.
      CHECK(schema["maxItems"].IsDefined());
      compare(schema["items"], type.element(), type.append(value), path + "[]");
    }
    if (type.kind == TypeKind::object_map) {
      CHECK(schema["maxProperties"].IsDefined());
      compare(schema["additionalProperties"], type.element(), type.place(value, "x"), path + "[]");
    }
  }
  int fields() const { return fields_; }

 private:
  void compare_members(const YAML::Node& schema, const TypeInfo& type, void* value,
                       const std::string& path) {
    std::set<std::string> in_cpp;
    std::set<std::string> in_yaml;
    for (const FieldInfo& field : type.fields) in_cpp.insert(std::string{field.name});
    for (const auto& entry : schema["properties"]) in_yaml.insert(entry.first.Scalar());
    CHECK(in_cpp == in_yaml);
    const std::set<std::string> required = texts_of(schema["required"]);
    for (const std::string& name : required) CHECK(in_cpp.count(name) == 1);
    for (const FieldInfo& field : type.fields) {
      const std::string name{field.name};
      const YAML::Node member = schema["properties"][name];
      if (!member.IsDefined()) continue;  // reported above
      const std::string member_path = fmt::format("{}.{}", path, name);
      CAPTURE(member_path);
      if (path.rfind("spec", 0) == 0) {
        if (member["default"].IsDefined()) {
          CHECK_FALSE(required.count(name) == 1);
          check_default(member["default"], field.type(), field.member(value), member_path);
        } else {
          // No default in the schema: the C++ one must say nothing, or is never used.
          CHECK((required.count(name) == 1 || is_empty(field.type(), field.member(value))));
        }
      } else {
        CHECK_FALSE(member["default"].IsDefined());
      }
      compare(member, field.type(), field.member(value), member_path);
    }
  }

  int fields_ = 0;
};

TEST_CASE("EnergyPolicy's C++ types and its CRD agree in every field, type, default and word") {
  const YAML::Node properties =
      load("energypolicies.yaml")["schema"]["openAPIV3Schema"]["properties"];
  EnergyPolicySpec spec;
  EnergyPolicyStatus status;
  Walk walk;
  walk.compare(properties["spec"], type_of<EnergyPolicySpec>(), &spec, "spec");
  walk.compare(properties["status"], type_of<EnergyPolicyStatus>(), &status, "status");
  CHECK(walk.fields() > 150);
}

TEST_CASE("NodePower's C++ types and its CRD agree in every field, type, default and word") {
  const YAML::Node properties = load("nodepowers.yaml")["schema"]["openAPIV3Schema"]["properties"];
  NodePowerSpec spec;
  NodePowerStatus status;
  Walk walk;
  walk.compare(properties["spec"], type_of<NodePowerSpec>(), &spec, "spec");
  walk.compare(properties["status"], type_of<NodePowerStatus>(), &status, "status");
  CHECK(walk.fields() > 80);
}

TEST_CASE("Estimator's C++ types and its CRD agree in every field, type, default and word") {
  const YAML::Node properties = load("estimators.yaml")["schema"]["openAPIV3Schema"]["properties"];
  EstimatorSpec spec;
  EstimatorStatus status;
  Walk walk;
  walk.compare(properties["spec"], type_of<EstimatorSpec>(), &spec, "spec");
  walk.compare(properties["status"], type_of<EstimatorStatus>(), &status, "status");
  CHECK(walk.fields() > 40);
}

// The properties of a schema by their path, with their types and without their rules.
void list_properties(const YAML::Node& schema, const std::string& path,
                     std::map<std::string, std::string>& out) {
  out[path] = text_of(schema["type"]);
  for (const auto& entry : schema["properties"]) {
    list_properties(entry.second, path + "." + entry.first.Scalar(), out);
  }
  if (schema["items"]) list_properties(schema["items"], path + "[]", out);
  if (schema["additionalProperties"]) {
    list_properties(schema["additionalProperties"], path + "{}", out);
  }
}

TEST_CASE("the Estimator of WAO's group has the same fields as ours, and forbids no word") {
  const auto documents =
      YAML::LoadAllFromFile(test::source_path("manifests/optional/wao-estimators.yaml"));
  const YAML::Node theirs =
      documents[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
  const YAML::Node ours = load("estimators.yaml")["schema"]["openAPIV3Schema"]["properties"];
  for (const char* part : {"spec", "status"}) {
    CAPTURE(part);
    std::map<std::string, std::string> in_theirs, in_ours;
    list_properties(theirs[part], part, in_theirs);
    list_properties(ours[part], part, in_ours);
    CHECK(in_theirs == in_ours);
    CHECK(in_ours.size() > 10);
  }
  std::ostringstream spec;
  spec << theirs["spec"];
  for (const char* rule : {"enum:", "pattern:", "x-kubernetes-validations:", "maxItems:"}) {
    CAPTURE(rule);
    CHECK(spec.str().find(rule) == std::string::npos);
  }
}

TEST_CASE("Site's C++ types and its CRD agree in every field, type, default and word") {
  const YAML::Node properties = load("sites.yaml")["schema"]["openAPIV3Schema"]["properties"];
  SiteSpec spec;
  SiteStatus status;
  Walk walk;
  walk.compare(properties["spec"], type_of<SiteSpec>(), &spec, "spec");
  walk.compare(properties["status"], type_of<SiteStatus>(), &status, "status");
  CHECK(walk.fields() > 75);
}

TEST_CASE("SiteRecommendation's C++ types and its CRD agree in every field and default") {
  const YAML::Node properties =
      load("siterecommendations.yaml")["schema"]["openAPIV3Schema"]["properties"];
  SiteRecommendationSpec spec;
  SiteRecommendationStatus status;
  Walk walk;
  walk.compare(properties["spec"], type_of<SiteRecommendationSpec>(), &spec, "spec");
  walk.compare(properties["status"], type_of<SiteRecommendationStatus>(), &status, "status");
  CHECK(walk.fields() > 100);
}

TEST_CASE("kubectl get shows the documented columns, from fields that exist") {
  struct Case {
    std::string file;
    const TypeInfo& type;
    std::vector<std::string> normal, wide;
  };
  const Case cases[] = {
      {"energypolicies.yaml",
       type_of<EnergyPolicy>(),
       {"MODE", "NODES", "OFF", "SLOW", "CAPPED", "WATTS", "SAVED", "READY", "AGE"},
       {"REASON", "LAST-ACTION"}},
      {"nodepowers.yaml",
       type_of<NodePower>(),
       {"STATE", "WATTS", "GOVERNOR", "CAP", "DECISION", "REASON", "SINCE"},
       {"BMC-CAP"}},
      {"estimators.yaml",
       type_of<Estimator>(),
       {"NODES", "USABLE", "WATTS", "READY", "AGE"},
       {"REASON"}},
      {"sites.yaml",
       type_of<Site>(),
       {"REGION", "ISP", "KIND", "AVAILABLE", "CPU-LOAD", "FREE-MBPS", "READY", "AGE"},
       {"CLUSTER", "ZONE", "REASON"}},
      {"siterecommendations.yaml",
       type_of<SiteRecommendation>(),
       {"ACTION", "SITE", "TOTAL", "FIT", "EXCLUDED", "READY", "AGE"},
       {"MACHINE", "REASON"}}};
  for (const Case& c : cases) {
    CAPTURE(c.file);
    std::vector<std::string> normal;
    std::vector<std::string> wide;
    for (const YAML::Node& column : load(c.file)["additionalPrinterColumns"]) {
      (column["priority"] ? wide : normal).push_back(text_of(column["name"]));
      std::string path = text_of(column["jsonPath"]);
      CAPTURE(path);
      const TypeInfo* type = &c.type;
      while (!path.empty() && path.front() == '.') {
        const std::size_t end = path.find_first_of(".[", 1);
        const std::string name = path.substr(1, end - 1);
        path = end == std::string::npos ? "" : path.substr(end);
        const auto field = std::find_if(type->fields.begin(), type->fields.end(),
                                        [&](const FieldInfo& f) { return f.name == name; });
        REQUIRE(field != type->fields.end());
        type = &field->type();
        if (!path.empty() && path.front() == '[') {  // [?(@.type=="Ready")]
          type = &type->element();
          path = path.substr(path.find(']') + 1);
        }
      }
    }
    CHECK(normal == c.normal);
    CHECK(wide == c.wide);
  }
}

}  // namespace
}  // namespace kwatt::api
