#include "planner/consolidation/named.hpp"

#include <charconv>

#include <fmt/format.h>

#include "planner/consolidation/adaptive_threshold.hpp"
#include "planner/consolidation/heuristic.hpp"
#include "planner/consolidation/local_regression.hpp"
#include "planner/consolidation/static_threshold.hpp"
#include "planner/consolidation/steady.hpp"

namespace kwatt::planner::consolidation {
namespace {

std::unique_ptr<OverloadRule> rule_named(std::string_view name, double parameter) {
  if (name == "thr") return std::make_unique<StaticThreshold>(parameter);
  if (name == "iqr") return std::make_unique<AdaptiveThreshold>(interquartile_range, parameter);
  if (name == "mad") {
    return std::make_unique<AdaptiveThreshold>(median_absolute_deviation, parameter);
  }
  if (name == "lr" || name == "lrr") return std::make_unique<LocalRegression>(parameter);
  return nullptr;
}

std::unique_ptr<SelectionRule> selection_named(std::string_view name, std::uint64_t seed) {
  if (name == "mmt") return std::make_unique<MinimumMigrationTime>();
  if (name == "mu") return std::make_unique<MinimumUtilization>();
  if (name == "rs") return std::make_unique<RandomSelection>(seed);
  if (name == "mc") return std::make_unique<MaximumCorrelation>();
  return nullptr;
}

Error unknown(std::string_view name) {
  std::string names;
  for (const std::string_view each : policy_names()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each);
  }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("no consolidation policy '{}': a detector (thr, iqr, mad, lr, lrr), a "
                  "selection (mmt, mu, rs, mc) and a parameter from 0 to 10, joined by '-', "
                  "or one of {}",
                  name, names));
}

}  // namespace

Result<std::unique_ptr<Policy>> policy_named(std::string_view name, std::uint64_t seed) {
  if (name == "dvfs") return std::unique_ptr<Policy>(std::make_unique<Static>());
  if (name == "kwatt") return std::unique_ptr<Policy>(std::make_unique<Steady>());
  const std::size_t first = name.find('-');
  const std::size_t second = first == std::string_view::npos ? first : name.find('-', first + 1);
  if (second == std::string_view::npos) return unknown(name);
  const std::string_view text = name.substr(second + 1);
  double parameter = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), parameter, std::chars_format::fixed);
  if (error != std::errc{} || stop != text.data() + text.size() ||
      !(parameter > 0 && parameter <= 10)) {
    return unknown(name);
  }
  std::unique_ptr<OverloadRule> rule = rule_named(name.substr(0, first), parameter);
  std::unique_ptr<SelectionRule> selection =
      selection_named(name.substr(first + 1, second - first - 1), seed);
  if (!rule || !selection) return unknown(name);
  return std::unique_ptr<Policy>(
      std::make_unique<Heuristic>(std::move(rule), std::move(selection)));
}

const std::vector<std::string_view>& policy_names() {
  static const std::vector<std::string_view> names = {
      "dvfs",        "thr-mmt-0.8", "iqr-mmt-1.5", "mad-mmt-2.5", "lr-mmt-1.2",
      "lrr-mmt-1.2", "lr-mu-1.2",   "lr-rs-1.2",   "lr-mc-1.2",   "kwatt"};
  return names;
}

}  // namespace kwatt::planner::consolidation
