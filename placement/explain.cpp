#include "placement/explain.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace kwatt::placement {
namespace {

std::string raw_text(const PluginScores& part, std::size_t at) {
  return part.unit.empty() ? std::to_string(part.raw[at])
                           : fmt::format("{} {}", part.raw[at], part.unit);
}

// What one plugin gave one target.
std::string part_text(const PluginScores& part, std::size_t at) {
  const std::string score =
      fmt::format("{} {} × {}", part.plugin, part.normalized[at], part.weight);
  return part.raw[at] == part.normalized[at] && part.unit.empty()
             ? score
             : fmt::format("{} ({})", score, raw_text(part, at));
}

std::vector<std::size_t> best_first(std::span<const std::string_view> names, const Scores& scores) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (scores.totals[a] != scores.totals[b]) return scores.totals[a] > scores.totals[b];
    return names[a] < names[b];
  });
  return order;
}

}  // namespace

std::string explain_choice(std::span<const std::string_view> names, const Scores& scores,
                           std::size_t best) {
  std::string text = fmt::format("{} scores {}", names[best], scores.totals[best]);
  std::string_view separator = ": ";
  for (const PluginScores& part : scores.plugins) {
    if (part.skipped) continue;
    text += separator;
    text += part_text(part, best);
    separator = ", ";
  }
  std::optional<std::size_t> next;
  for (const std::size_t at : best_first(names, scores)) {
    if (at != best && !next) next = at;
  }
  if (!next) return text + "; nothing else fits";
  text += fmt::format("; next {} with {}", names[*next], scores.totals[*next]);
  // Where it lost most.
  const PluginScores* decided = nullptr;
  std::int64_t most = 0;
  for (const PluginScores& part : scores.plugins) {
    if (part.skipped) continue;
    const std::int64_t lost = part.weighted[best] - part.weighted[*next];
    if (lost > most) {
      most = lost;
      decided = &part;
    }
  }
  if (decided != nullptr) text += fmt::format(", {}", part_text(*decided, *next));
  return text;
}

std::string explain_excluded(const Filtered& filtered) {
  struct Group {
    std::string_view plugin;
    std::size_t count = 0;
    const std::string* reason = nullptr;
  };
  std::vector<Group> groups;
  for (const Excluded& out : filtered.excluded) {
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const Group& group) { return group.plugin == out.plugin; });
    if (at == groups.end()) at = groups.insert(groups.end(), {out.plugin, 0, &out.reason});
    ++at->count;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.count > b.count; });
  std::string text =
      filtered.feasible.empty() ? "nothing fits" : fmt::format("{} fit", filtered.feasible.size());
  std::string_view separator = ": ";
  if (!filtered.feasible.empty()) separator = ", excluded: ";
  for (const Group& group : groups) {
    text += fmt::format("{}{} {} ({})", separator, group.count, group.plugin, *group.reason);
    separator = ", ";
  }
  return text;
}

std::string score_table(std::span<const std::string_view> names, const Scores& scores,
                        std::size_t rows) {
  std::vector<std::vector<std::string>> table(1, {"NODE", "TOTAL"});
  std::string silent;
  for (const PluginScores& part : scores.plugins) {
    if (!part.skipped) {
      table.front().emplace_back(part.plugin);
    } else {
      silent += fmt::format("{}: {}\n", part.plugin, part.note.empty() ? "skipped" : part.note);
    }
  }
  const auto order = best_first(names, scores);
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const std::size_t at = order[i];
    auto& line = table.emplace_back();
    line.emplace_back(names[at]);
    line.push_back(std::to_string(scores.totals[at]));
    for (const PluginScores& part : scores.plugins) {
      if (part.skipped) continue;
      line.push_back(fmt::format("{} → {} × {} = {}", raw_text(part, at), part.normalized[at],
                                 part.weight, part.weighted[at]));
    }
  }
  // Width in code points, as terminals show them.
  const auto width = [](const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) >> 6) != 2;
    }));
  };
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& line : table) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], width(line[c]));
  }
  std::string text;
  for (const auto& line : table) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      text += line[c];
      if (c + 1 < line.size()) text.append(widths[c] - width(line[c]) + 2, ' ');
    }
    text += '\n';
  }
  if (order.size() > rows) text += fmt::format("and {} more\n", order.size() - rows);
  return text + silent;
}

}  // namespace kwatt::placement
