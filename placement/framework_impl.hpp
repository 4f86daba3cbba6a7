#pragma once
// The bodies of placement/framework.hpp, which includes this file. Plugins run one after another
// over all targets, which gives the same first refusal as target after target, and keeps one
// plugin's code and state in the cache.
#include "placement/framework.hpp"

namespace kwatt::placement {
namespace detail {

// What a profile must be, apart from its types.
struct ProfileEntry {
  std::string_view name;
  bool scores = false;
  std::int64_t weight = 1;
};
std::optional<Error> check_profile(const std::vector<ProfileEntry>& entries, ScoreRange range);

Error plugin_failed(std::string_view plugin, std::string_view step, std::string_view target,
                    const Status& status);
Error out_of_range(std::string_view plugin, std::string_view target, std::int64_t score,
                   ScoreRange range);
Error sum_too_large(std::string_view plugin, std::string_view target, std::int64_t score,
                    std::int64_t weight);
Error narrowed_to_nothing(std::string_view plugin);

// Every target is there at most once.
void sort_by_target(std::vector<Excluded>& excluded, std::size_t targets);

inline bool refuses(Code code) {
  return code == Code::unschedulable || code == Code::unresolvable;
}

}  // namespace detail

template <class Request, class Target>
Result<Framework<Request, Target>> Framework<Request, Target>::create(std::vector<Enabled> profile,
                                                                      ScoreRange range) {
  std::vector<detail::ProfileEntry> entries;
  entries.reserve(profile.size());
  for (const Enabled& enabled : profile) {
    if (enabled.plugin == nullptr) {
      return fail(ErrorCode::invalid_argument, "a profile names a plugin that does not exist");
    }
    entries.push_back({enabled.plugin->name(), enabled.plugin->scores(), enabled.weight});
  }
  if (auto problem = detail::check_profile(entries, range)) return std::move(*problem);
  return Framework{std::move(profile), range};
}

template <class Request, class Target>
Result<Filtered> Framework<Request, Target>::filter(const Request& request,
                                                    Targets<Target> targets) const {
  Filtered result;
  std::vector<std::size_t>& feasible = result.feasible;
  feasible.resize(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) feasible[i] = i;
  struct Narrowing {
    const PluginType* plugin;
    std::unique_ptr<CycleState> state;
  };
  std::vector<Narrowing> narrowing;

  for (const Enabled& enabled : profile_) {
    const PluginType& plugin = *enabled.plugin;
    if (feasible.empty()) break;
    if (!plugin.filters()) continue;
    std::unique_ptr<CycleState> state;
    const Status before = plugin.pre_filter(request, targets, state);
    if (before.code == Code::skip) continue;
    if (before.code == Code::error) {
      return detail::plugin_failed(plugin.name(), "PreFilter", {}, before);
    }
    std::size_t kept = 0;
    for (const std::size_t target : feasible) {
      Status status = before.ok() ? plugin.filter(request, *targets[target], state.get()) : before;
      if (status.ok()) {
        feasible[kept++] = target;
      } else if (detail::refuses(status.code)) {
        result.excluded.push_back({target, plugin.name(), status.code, std::move(status.reason)});
      } else {
        return detail::plugin_failed(plugin.name(), "Filter", name_of(*targets[target]), status);
      }
    }
    feasible.resize(kept);
    if (plugin.narrows()) narrowing.push_back({&plugin, std::move(state)});
  }

  for (const Narrowing& step : narrowing) {
    if (feasible.size() < 2) break;
    std::vector<const Target*> passed;
    passed.reserve(feasible.size());
    for (const std::size_t target : feasible) passed.push_back(targets[target]);
    std::vector<Status> refused(passed.size());
    const Status status = step.plugin->narrow(request, passed, step.state.get(), refused);
    if (!status.ok()) return detail::plugin_failed(step.plugin->name(), "Narrow", {}, status);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < refused.size(); ++i) {
      const std::size_t target = feasible[i];
      if (refused[i].ok()) {
        feasible[kept++] = target;
      } else if (detail::refuses(refused[i].code)) {
        result.excluded.push_back(
            {target, step.plugin->name(), refused[i].code, std::move(refused[i].reason)});
      } else {
        return detail::plugin_failed(step.plugin->name(), "Narrow", name_of(*targets[target]),
                                     refused[i]);
      }
    }
    if (kept == 0) return detail::narrowed_to_nothing(step.plugin->name());
    feasible.resize(kept);
  }
  detail::sort_by_target(result.excluded, targets.size());
  return result;
}

template <class Request, class Target>
Result<Scores> Framework<Request, Target>::score(const Request& request,
                                                 Targets<Target> feasible) const {
  Scores result;
  result.totals.resize(feasible.size());
  if (feasible.empty()) return result;
  for (const Enabled& enabled : profile_) {
    const PluginType& plugin = *enabled.plugin;
    if (!plugin.scores()) continue;
    PluginScores& part = result.plugins.emplace_back();
    part.plugin = plugin.name();
    part.unit = plugin.unit();
    part.weight = enabled.weight;
    std::unique_ptr<CycleState> state;
    Status before = plugin.pre_score(request, feasible, state);
    if (before.code == Code::skip) {
      part.skipped = true;
      part.note = std::move(before.reason);
      continue;
    }
    if (!before.ok()) return detail::plugin_failed(part.plugin, "PreScore", {}, before);
    part.raw.resize(feasible.size());
    for (std::size_t i = 0; i < feasible.size(); ++i) {
      const Status status = plugin.score(request, *feasible[i], state.get(), part.raw[i]);
      if (!status.ok()) {
        return detail::plugin_failed(part.plugin, "Score", name_of(*feasible[i]), status);
      }
    }
    part.normalized = part.raw;
    const Status normalized = plugin.normalize(request, range_, part.normalized);
    if (!normalized.ok()) {
      return detail::plugin_failed(part.plugin, "Normalize", {}, normalized);
    }
    part.weighted.resize(feasible.size());
    for (std::size_t i = 0; i < feasible.size(); ++i) {
      const std::int64_t value = part.normalized[i];
      if (value < range_.least || value > range_.most) {
        return detail::out_of_range(part.plugin, name_of(*feasible[i]), value, range_);
      }
      if (__builtin_mul_overflow(value, enabled.weight, &part.weighted[i]) ||
          __builtin_add_overflow(result.totals[i], part.weighted[i], &result.totals[i])) {
        return detail::sum_too_large(part.plugin, name_of(*feasible[i]), value, enabled.weight);
      }
    }
  }
  return result;
}

template <class Request, class Target>
std::optional<std::size_t> Framework<Request, Target>::best(Targets<Target> feasible,
                                                            const Scores& scores,
                                                            const TieBreaker& tie_breaker) {
  std::optional<std::size_t> best;
  const auto before = [&](std::size_t a, std::size_t b) {
    if (scores.totals[a] != scores.totals[b]) return scores.totals[a] > scores.totals[b];
    if (tie_breaker) {
      if (tie_breaker(*feasible[a], *feasible[b])) return true;
      if (tie_breaker(*feasible[b], *feasible[a])) return false;
    }
    return name_of(*feasible[a]) < name_of(*feasible[b]);
  };
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    if (!best || before(i, *best)) best = i;
  }
  return best;
}

template <class Request, class Target>
Result<Choice> Framework<Request, Target>::choose(const Request& request, Targets<Target> targets,
                                                  const TieBreaker& tie_breaker) const {
  auto filtered = filter(request, targets);
  if (!filtered) return filtered.error();
  Choice choice;
  choice.filtered = std::move(*filtered);
  std::vector<const Target*> feasible;
  feasible.reserve(choice.filtered.feasible.size());
  for (const std::size_t target : choice.filtered.feasible) feasible.push_back(targets[target]);
  auto scores = score(request, feasible);
  if (!scores) return scores.error();
  choice.scores = std::move(*scores);
  if (const auto at = best(feasible, choice.scores, tie_breaker)) {
    choice.best = choice.filtered.feasible[*at];
  }
  return choice;
}

}  // namespace kwatt::placement
