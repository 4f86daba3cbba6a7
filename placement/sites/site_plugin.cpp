#include "placement/sites/site_plugin.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::placement::sites {
namespace {

struct Worst final : CycleState {
  std::int64_t value = 0;
};

// Rounded to the nearest.
std::int64_t share(std::int64_t part, Wide whole, std::int64_t of) {
  return static_cast<std::int64_t>((static_cast<Wide>(part) * of * 2 + whole) / (whole * 2));
}

// Each score's part of the sum of all.
void normalize_sum(bool lower_is_better, ScoreRange range, std::span<std::int64_t> scores) {
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  const std::int64_t low = *least;
  const std::int64_t high = *most;
  Wide sum = 0;
  for (std::int64_t& score : scores) {
    // Turned around between the same ends, then moved up to 0 where something is below it.
    if (lower_is_better) score = high - (score - low);
    if (low < 0) score -= low;
    sum += score;
  }
  const auto count = static_cast<std::int64_t>(scores.size());
  for (std::int64_t& score : scores) {
    score = range.least + (sum == 0 ? range.most / count : share(score, sum, range.most));
  }
}

}  // namespace

Status ValuePlugin::pre_score(const SiteRequest& request, Targets<SiteView> feasible,
                              std::unique_ptr<CycleState>& state) const {
  std::optional<std::int64_t> worst;
  std::string why;
  for (const SiteView* view : feasible) {
    const Amount amount = value(request, *view);
    if (!amount.value) {
      why = amount.why;
    } else if (!worst) {
      worst = amount.value;
    } else {
      worst = lower_is_better() ? std::max(*worst, *amount.value) : std::min(*worst, *amount.value);
    }
  }
  if (!worst) return Status::skip(fmt::format("not known of any site: {}", why));
  auto known = std::make_unique<Worst>();
  known->value = *worst;
  state = std::move(known);
  return {};
}

Status ValuePlugin::score(const SiteRequest& request, const SiteView& view, const CycleState* state,
                          std::int64_t& out) const {
  out = value(request, view).value.value_or(static_cast<const Worst*>(state)->value);
  return {};
}

Status ValuePlugin::normalize(const SiteRequest& request, ScoreRange range,
                              std::span<std::int64_t> scores) const {
  normalize_scores(request.spec.normalize, lower_is_better(), range, scores);
  return {};
}

std::string ValuePlugin::explain(const SiteRequest& request, const SiteView& view) const {
  const Amount amount = value(request, view);
  if (!amount.value) return fmt::format("{}: counts as the worst that is known", amount.why);
  return describe(request, view);
}

ScoreRange range_of(api::Normalize how) {
  return how == api::Normalize::None ? ScoreRange::any() : ScoreRange{};
}

void normalize_scores(api::Normalize how, bool lower_is_better, ScoreRange range,
                      std::span<std::int64_t> scores) {
  if (scores.empty()) return;
  switch (how) {
    case api::Normalize::MinMax:
      normalize_min_max(range, scores, lower_is_better);
      return;
    case api::Normalize::Sum:
      normalize_sum(lower_is_better, range, scores);
      return;
    case api::Normalize::None:
      for (std::int64_t& score : scores) score = lower_is_better ? -score : score;
      return;
  }
}

}  // namespace kwatt::placement::sites
