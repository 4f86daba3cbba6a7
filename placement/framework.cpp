#include "placement/framework.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::placement {

// The product of two spans may need more than 64 bits.
__extension__ using Wide = __int128;

std::string_view to_string(Code code) {
  switch (code) {
    case Code::success:
      return "Success";
    case Code::skip:
      return "Skip";
    case Code::unschedulable:
      return "Unschedulable";
    case Code::unresolvable:
      return "UnschedulableAndUnresolvable";
    case Code::error:
      return "Error";
  }
  return "Error";
}

void normalize_min_max(ScoreRange range, std::span<std::int64_t> scores, bool lower_is_better) {
  if (scores.empty()) return;
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  const Wide least = *low, most = *high, span = most - least;
  const Wide wide = static_cast<Wide>(range.most) - range.least;
  for (std::int64_t& score : scores) {
    const Wide from_worst = lower_is_better ? most - score : score - least;
    score =
        span == 0 ? range.most : static_cast<std::int64_t>(range.least + from_worst * wide / span);
  }
}

namespace detail {

std::optional<Error> check_profile(const std::vector<ProfileEntry>& entries, ScoreRange range) {
  if (range.least > range.most) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("no score is between {} and {}", range.least, range.most));
  }
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    const bool twice = std::any_of(entries.begin(), entry, [&](const ProfileEntry& earlier) {
      return earlier.name == entry->name;
    });
    if (twice) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("plugin {} is in the profile twice", entry->name));
    }
    if (entry->scores && entry->weight <= 0) {
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("plugin {} has weight {}: it must be above 0, or leave the plugin out",
                      entry->name, entry->weight));
    }
  }
  return std::nullopt;
}

Error plugin_failed(std::string_view plugin, std::string_view step, std::string_view target,
                    const Status& status) {
  const std::string_view what =
      status.reason.empty() ? std::string_view{"no reason given"} : std::string_view{status.reason};
  return fail(ErrorCode::internal, target.empty()
                                       ? fmt::format("plugin {}: {} answered {}: {}", plugin, step,
                                                     to_string(status.code), what)
                                       : fmt::format("plugin {}: {} of {} answered {}: {}", plugin,
                                                     step, target, to_string(status.code), what));
}

Error out_of_range(std::string_view plugin, std::string_view target, std::int64_t score,
                   ScoreRange range) {
  return fail(ErrorCode::internal,
              fmt::format("plugin {}: the score of {} is {}, it must be between {} and {}", plugin,
                          target, score, range.least, range.most));
}

Error sum_too_large(std::string_view plugin, std::string_view target, std::int64_t score,
                    std::int64_t weight) {
  return fail(
      ErrorCode::internal,
      fmt::format("plugin {}: the score {} of {} times weight {} is more than a total can be",
                  plugin, score, target, weight));
}

Error narrowed_to_nothing(std::string_view plugin) {
  return fail(ErrorCode::internal,
              fmt::format("plugin {}: Narrow refused every target, it must leave one", plugin));
}

void sort_by_target(std::vector<Excluded>& excluded, std::size_t targets) {
  if (std::is_sorted(excluded.begin(), excluded.end(),
                     [](const Excluded& a, const Excluded& b) { return a.target < b.target; })) {
    return;
  }
  // Thousands of sentences are moved once each, not as often as a sort would.
  std::vector<std::size_t> place(targets, excluded.size());
  for (std::size_t i = 0; i < excluded.size(); ++i) place[excluded[i].target] = i;
  std::vector<Excluded> sorted;
  sorted.reserve(excluded.size());
  for (const std::size_t i : place) {
    if (i < excluded.size()) sorted.push_back(std::move(excluded[i]));
  }
  excluded = std::move(sorted);
}

}  // namespace detail
}  // namespace kwatt::placement
