#include "placement/sites/recommend.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

using SiteFramework = Framework<SiteRequest, SiteView>;
using Views = std::vector<const SiteView*>;

// The scores of one site, in the order of the request's weights.
std::vector<api::SiteScore> scores_of(const SiteRequest& request, const SiteFramework& framework,
                                      const Scores& scores, const SiteView& view, std::size_t at) {
  std::map<std::string_view, const SitePlugin*> plugins;
  for (const auto& enabled : framework.profile()) {
    plugins.emplace(enabled.plugin->name(), static_cast<const SitePlugin*>(enabled.plugin.get()));
  }
  std::vector<api::SiteScore> out;
  for (const api::SiteWeight& weight : request.spec.weights) {
    const std::string name =
        weight.plugin.empty() ? "Indicator/" + weight.indicator : weight.plugin;
    const auto part = std::find_if(scores.plugins.begin(), scores.plugins.end(),
                                   [&](const PluginScores& one) { return one.plugin == name; });
    if (part == scores.plugins.end() || part->skipped) continue;
    out.push_back({name, part->raw[at], part->normalized[at], part->weight, part->weighted[at],
                   plugins.at(name)->explain(request, view)});
  }
  return out;
}

// The total of a site that only its taints keep out, had they been tolerated: scored among the
// others, because what normalization makes of it depends on them.
Result<std::int64_t> total_if_tolerated(const SiteRequest& request, const SiteFramework& framework,
                                        Views feasible, const SiteView& view) {
  const auto at = static_cast<std::size_t>(
      std::lower_bound(feasible.begin(), feasible.end(), &view,
                       [](const auto* a, const auto* b) { return a->name() < b->name(); }) -
      feasible.begin());
  feasible.insert(feasible.begin() + static_cast<std::ptrdiff_t>(at), &view);
  auto scores = framework.score(request, feasible);
  if (!scores) return scores.error();
  return scores->totals[at];
}

// Each recommended site's share of 100 by its total, at least 1. Totals at or below 0 (None, where
// less is better) are moved up so that the least becomes 1.
std::vector<api::ClusterWeight> weights_of(const std::vector<api::RankedSite>& ranked,
                                           const std::map<std::string, std::string>& clusters) {
  std::vector<api::ClusterWeight> out;
  std::int64_t least = 1;
  for (const api::RankedSite& site : ranked) {
    if (site.recommended) least = std::min(least, site.total);
  }
  Wide sum = 0;
  const auto moved = [&](std::int64_t total) -> Wide {
    return static_cast<Wide>(total) + (least < 1 ? 1 - static_cast<Wide>(least) : 0);
  };
  for (const api::RankedSite& site : ranked) {
    if (site.recommended) sum += moved(site.total);
  }
  for (const api::RankedSite& site : ranked) {
    if (!site.recommended) continue;
    const auto share = static_cast<std::int64_t>((moved(site.total) * 200 + sum) / (sum * 2));
    out.push_back({site.name, clusters.at(site.name), std::max<std::int64_t>(1, share)});
  }
  return out;
}

}  // namespace

Result<SiteAnswer> recommend(const SiteRequest& request, std::vector<SiteView> sites) {
  auto profile = site_profile(request.spec.weights);
  if (!profile) return profile.error();
  auto framework = SiteFramework::create(std::move(*profile), range_of(request.spec.normalize));
  if (!framework) return framework.error();
  std::sort(sites.begin(), sites.end(),
            [](const SiteView& a, const SiteView& b) { return a.name() < b.name(); });
  Views targets;
  targets.reserve(sites.size());
  std::map<std::string, std::string> clusters;
  for (const SiteView& view : sites) {
    targets.push_back(&view);
    clusters.emplace(view.name(), view.site->spec.cluster.name);
  }

  auto filtered = framework->filter(request, targets);
  if (!filtered) return filtered.error();
  Views feasible;
  for (const std::size_t at : filtered->feasible) feasible.push_back(targets[at]);
  auto scores = framework->score(request, feasible);
  if (!scores) return scores.error();

  SiteAnswer answer;
  std::vector<std::size_t> order(feasible.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> preferred(feasible.size());
  for (std::size_t i = 0; i < feasible.size(); ++i) preferred[i] = prefers(request, *feasible[i]);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (scores->totals[a] != scores->totals[b]) return scores->totals[a] > scores->totals[b];
    return preferred[a] && !preferred[b];
  });
  const auto count = static_cast<std::size_t>(request.spec.count);
  for (const std::size_t at : order) {
    api::RankedSite& site = answer.sites.emplace_back();
    site.name = feasible[at]->name();
    site.total = scores->totals[at];
    site.recommended = answer.sites.size() <= count;
    site.affinity = preferred[at];
    site.scores = scores_of(request, *framework, *scores, *feasible[at], at);
  }
  for (const Excluded& excluded : filtered->excluded) {
    api::ExcludedSite& site = answer.excluded.emplace_back();
    site.name = targets[excluded.target]->name();
    site.plugin = excluded.plugin;
    site.reason = excluded.reason;
    // For what is shown only: each costs as much as scoring all.
    if (excluded.plugin != "Taint" || answer.excluded.size() > api::kSiteListLimit) continue;
    auto total = total_if_tolerated(request, *framework, feasible, *targets[excluded.target]);
    if (!total) return total.error();
    site.total_if_tolerated = *total;
  }
  for (const PluginScores& part : scores->plugins) {
    if (part.skipped)
      answer.notes.push_back(fmt::format("{} is left out: {}", part.plugin, part.note));
  }
  answer.weights = weights_of(answer.sites, clusters);
  return answer;
}

void show(const SiteAnswer& answer, api::SiteRecommendationStatus& status) {
  const auto first = [](const auto& list) {
    const std::size_t shown = std::min(list.size(), api::kSiteListLimit);
    return std::decay_t<decltype(list)>(list.begin(),
                                        list.begin() + static_cast<std::ptrdiff_t>(shown));
  };
  status.sites = first(answer.sites);
  status.sites_total = static_cast<std::int64_t>(answer.sites.size());
  status.excluded = first(answer.excluded);
  status.excluded_total = static_cast<std::int64_t>(answer.excluded.size());
  status.weights = answer.weights;
  status.notes = answer.notes;
  status.site = answer.sites.empty() ? "" : answer.sites.front().name;
  status.total = answer.sites.empty() ? 0 : answer.sites.front().total;
}

}  // namespace kwatt::placement::sites
