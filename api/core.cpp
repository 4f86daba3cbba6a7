#include "api/core.hpp"

#include <algorithm>
#include <charconv>

namespace kwatt::api {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As ToleratesTaint of k8s.io/api/core/v1: an empty effect matches all effects, an empty key with
// Exists all keys. Gt and Lt (1.35, alpha) compare whole numbers.
bool tolerates_one(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  if (toleration.key.empty()) return false;  // the API server refuses it; be strict
  if (toleration.op.empty() || toleration.op == "Equal") return toleration.value == taint.value;
  if (toleration.op == "Gt" || toleration.op == "Lt") {
    const auto left = parse_integer(taint.value);
    const auto right = parse_integer(toleration.value);
    if (!left || !right) return false;
    return toleration.op == "Gt" ? *left > *right : *left < *right;
  }
  return false;
}

}  // namespace

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& t) { return tolerates_one(t, taint); });
}

}  // namespace kwatt::api
