#pragma once
// The bodies of placement/framework.hpp, which includes this file. Plugins run one after another
// over a few targets at a time: the first refusal is the same as target after target, and both a
// plugin's state and the targets stay in the cache.
#include <algorithm>

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

// A target is half a kilobyte of what plugins look at.
inline constexpr std::size_t kTargetsAtATime = 32;

// Targets lie anywhere in memory; fetching the next few while these are worked on hides most of the
// wait for them.
template <class Target>
void fetch_ahead(const Target& target) {
  constexpr std::size_t kCacheLine = 64;
  const char* bytes = reinterpret_cast<const char*>(&target);
  for (std::size_t at = 0; at < sizeof(Target); at += kCacheLine) __builtin_prefetch(bytes + at);
}

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
  struct Step {
    const PluginType* plugin;
    Status before;
    std::unique_ptr<CycleState> state;
  };
  std::vector<Step> steps;
  for (const Enabled& enabled : profile_) {
    const PluginType& plugin = *enabled.plugin;
    if (targets.empty() || !plugin.filters()) continue;
    Step step{&plugin, {}, nullptr};
    step.before = plugin.pre_filter(request, targets, step.state);
    if (step.before.code == Code::skip) continue;
    if (step.before.code == Code::error) {
      return detail::plugin_failed(plugin.name(), "PreFilter", {}, step.before);
    }
    const bool none = !step.before.ok();
    steps.push_back(std::move(step));
    if (none) break;  // no target is left for those behind it
  }

  std::size_t all_kept = 0;
  for (std::size_t first = 0; first < targets.size(); first += detail::kTargetsAtATime) {
    std::size_t last = std::min(first + detail::kTargetsAtATime, targets.size());
    const std::size_t next = std::min(last + detail::kTargetsAtATime, targets.size());
    for (std::size_t i = last; i < next; ++i) detail::fetch_ahead(*targets[i]);
    for (const Step& step : steps) {
      const PluginType& plugin = *step.plugin;
      std::size_t kept = first;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t target = feasible[i];
        Status status = step.before.ok()
                            ? plugin.filter(request, *targets[target], step.state.get())
                            : step.before;
        if (status.ok()) {
          feasible[kept++] = target;
        } else if (detail::refuses(status.code)) {
          result.excluded.push_back({target, plugin.name(), status.code, std::move(status.reason)});
        } else {
          return detail::plugin_failed(plugin.name(), "Filter", name_of(*targets[target]), status);
        }
      }
      last = kept;
    }
    for (std::size_t i = first; i < last; ++i) feasible[all_kept++] = feasible[i];
  }
  feasible.resize(all_kept);

  for (const Step& step : steps) {
    if (!step.plugin->narrows()) continue;
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
  struct Step {
    const PluginType* plugin;
    std::int64_t weight;
    std::unique_ptr<CycleState> state;
    std::size_t part;  // of result.plugins
  };
  std::vector<Step> steps;
  for (const Enabled& enabled : profile_) {
    const PluginType& plugin = *enabled.plugin;
    if (!plugin.scores()) continue;
    PluginScores& part = result.plugins.emplace_back();
    part.plugin = plugin.name();
    part.unit = plugin.unit();
    part.weight = enabled.weight;
    Step step{&plugin, enabled.weight, nullptr, result.plugins.size() - 1};
    Status before = plugin.pre_score(request, feasible, step.state);
    if (before.code == Code::skip) {
      part.skipped = true;
      part.note = std::move(before.reason);
      continue;
    }
    if (!before.ok()) return detail::plugin_failed(part.plugin, "PreScore", {}, before);
    part.raw.resize(feasible.size());
    steps.push_back(std::move(step));
  }
  for (std::size_t first = 0; first < feasible.size(); first += detail::kTargetsAtATime) {
    const std::size_t last = std::min(first + detail::kTargetsAtATime, feasible.size());
    const std::size_t next = std::min(last + detail::kTargetsAtATime, feasible.size());
    for (std::size_t i = last; i < next; ++i) detail::fetch_ahead(*feasible[i]);
    for (const Step& step : steps) {
      std::vector<std::int64_t>& raw = result.plugins[step.part].raw;
      for (std::size_t i = first; i < last; ++i) {
        const Status status = step.plugin->score(request, *feasible[i], step.state.get(), raw[i]);
        if (!status.ok()) {
          return detail::plugin_failed(step.plugin->name(), "Score", name_of(*feasible[i]), status);
        }
      }
    }
  }
  for (const Step& step : steps) {
    const PluginType& plugin = *step.plugin;
    PluginScores& part = result.plugins[step.part];
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
      if (__builtin_mul_overflow(value, step.weight, &part.weighted[i]) ||
          __builtin_add_overflow(result.totals[i], part.weighted[i], &result.totals[i])) {
        return detail::sum_too_large(part.plugin, name_of(*feasible[i]), value, step.weight);
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
