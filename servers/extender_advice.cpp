#include "servers/extender_advice.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace kwatt::servers {
namespace {

constexpr std::string_view kEnergyPlugin = "EnergyIncrease";

// What breaks ties between equal totals: milliwatts, before they were rounded to a hundred steps.
const std::vector<std::int64_t>* increases(const placement::Scores& details) {
  for (const placement::PluginScores& part : details.plugins) {
    if (part.plugin == kEnergyPlugin && !part.skipped) return &part.raw;
  }
  return nullptr;
}

}  // namespace

Offer look_up(const ExtenderArgs& args, const placement::NodeTable& table) {
  std::vector<std::string_view> names;
  names.reserve(args.nodes.size());
  for (const OfferedNode& node : args.nodes) names.push_back(node.name);
  Offer offer;
  offer.known.resize(names.size());
  table.find(names, offer.known);
  offer.position.reserve(names.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (offer.known[i] == nullptr) {
      offer.unknown.push_back(i);
    } else {
      offer.known[kept++] = offer.known[i];
      offer.position.push_back(i);
    }
  }
  offer.known.resize(kept);
  return offer;
}

Result<FilterAdvice> advise_filter(const placement::NodeFramework& framework,
                                   const placement::PodInfo& pod, const ExtenderArgs& args,
                                   const Offer& offer) {
  auto filtered = framework.filter(pod, offer.known);
  if (!filtered) return filtered.error();
  FilterAdvice advice;
  advice.overruled = filtered->feasible.empty() && !offer.known.empty() && offer.unknown.empty();
  if (advice.overruled) {
    advice.passed.resize(args.nodes.size());
    std::iota(advice.passed.begin(), advice.passed.end(), std::size_t{0});
    return advice;
  }
  advice.passed.reserve(filtered->feasible.size() + offer.unknown.size());
  for (const std::size_t at : filtered->feasible) advice.passed.push_back(offer.position[at]);
  advice.passed.insert(advice.passed.end(), offer.unknown.begin(), offer.unknown.end());
  if (!offer.unknown.empty()) std::sort(advice.passed.begin(), advice.passed.end());
  advice.excluded = std::move(filtered->excluded);
  for (placement::Excluded& one : advice.excluded) one.target = offer.position[one.target];
  return advice;
}

Standing standing_of(const placement::PodInfo& pod, const placement::NodeInfo& node) {
  if (placement::reservation_for(pod, node) != nullptr) return Standing::reserved;
  const bool last = node.slow || node.capped || node.idle_pool || node.leaving || !node.awake;
  return last ? Standing::last_resort : Standing::normal;
}

Result<PriorityAdvice> advise_priorities(const placement::NodeFramework& framework,
                                         const placement::PodInfo& pod, const ExtenderArgs& args,
                                         const Offer& offer) {
  auto details = framework.score(pod, offer.known);
  if (!details) return details.error();
  PriorityAdvice advice;
  advice.details = std::move(*details);
  std::vector<Ranked> ranked(args.nodes.size());
  const std::vector<std::int64_t>* increase = increases(advice.details);
  for (std::size_t i = 0; i < offer.known.size(); ++i) {
    Ranked& node = ranked[offer.position[i]];
    node.standing = standing_of(pod, *offer.known[i]);
    node.total = advice.details.totals[i];
    if (increase != nullptr) node.increase = (*increase)[i];
  }
  advice.scores = extender_scores(ranked);
  return advice;
}

std::string explain_total(const placement::Scores& details, std::size_t known) {
  std::string text;
  for (const placement::PluginScores& part : details.plugins) {
    if (part.skipped) continue;
    fmt::format_to(std::back_inserter(text), "{}{} {}{}{} ({} x {})", text.empty() ? "" : ", ",
                   part.plugin, part.raw[known], part.unit.empty() ? "" : " ", part.unit,
                   part.normalized[known], part.weight);
  }
  return text;
}

std::vector<std::size_t> best_first(const PriorityAdvice& advice, const Offer& offer,
                                    std::size_t most) {
  std::vector<std::size_t> order(offer.known.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) {
    const std::int64_t score_a = advice.scores[offer.position[a]];
    const std::int64_t score_b = advice.scores[offer.position[b]];
    if (score_a != score_b) return score_a > score_b;
    const std::int64_t total_a = advice.details.totals[a], total_b = advice.details.totals[b];
    if (total_a != total_b) return total_a > total_b;
    return offer.known[a]->name < offer.known[b]->name;
  };
  const std::size_t shown = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    before);
  order.resize(shown);
  return order;
}

}  // namespace kwatt::servers
