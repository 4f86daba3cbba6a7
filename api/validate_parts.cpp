#include "api/validate_parts.hpp"

#include "api/words.hpp"

namespace kwatt::api {

bool is_object_name(std::string_view text) {
  bool edge = true;  // at the beginning of a label, or just behind one
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!plain && (edge || (c != '-' && c != '.'))) return false;
    edge = c == '.';
  }
  return !text.empty() && text.back() != '-' && text.back() != '.' &&
         text.find("-.") == std::string_view::npos;
}

void check_selector(const LabelSelector& selector, const std::string& path,
                    std::size_t most_requirements, std::size_t most_values, Problems& out) {
  out.size(path + ".matchLabels", selector.match_labels.size(), 64);
  for (const auto& [label, value] : selector.match_labels) {
    out.length(fmt::format("{}.matchLabels[{}]", path, label), value, 63);
  }
  out.size(path + ".matchExpressions", selector.match_expressions.size(), most_requirements);
  for (std::size_t i = 0; i < selector.match_expressions.size(); ++i) {
    const SelectorRequirement& requirement = selector.match_expressions[i];
    const std::string place = fmt::format("{}.matchExpressions[{}]", path, i);
    if (requirement.key.empty()) out.add(place + ".key", "name the label that is meant");
    out.length(place + ".key", requirement.key, 317);
    out.one_of(place + ".operator", requirement.op, kSelectorOperators);
    out.size(place + ".values", requirement.values.size(), most_values);
    for (const std::string& value : requirement.values) {
      out.length(place + ".values", value, 63);
    }
    const bool wants_values = requirement.op == "In" || requirement.op == "NotIn";
    if (wants_values == requirement.values.empty()) {
      out.add(place, "In and NotIn need values, Exists and DoesNotExist must have none");
    }
  }
}

void check_secret(const SecretReference& secret, const std::string& path, Problems& out) {
  out.length(path + ".name", secret.name, 253);
  if (!secret.name.empty() && !is_object_name(secret.name)) {
    out.add(path + ".name", "\"{}\" must be the name of a Secret in the controller's namespace",
            secret.name);
  }
}

}  // namespace kwatt::api
