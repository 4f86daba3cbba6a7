// The rules of SiteRecommendation: those of crds/siterecommendations.yaml once more.
#include <set>

#include "api/problems.hpp"
#include "api/site_recommendation.hpp"
#include "api/validate_parts.hpp"
#include "api/words.hpp"

namespace kwatt::api {
namespace {

constexpr std::int64_t kMany = 1'000'000'000;

void check(const SiteToleration& toleration, const std::string& path, Problems& out) {
  out.length(path + ".key", toleration.key, 317);
  out.length(path + ".value", toleration.value, 63);
  out.one_of(path + ".effect", toleration.effect, kToleratedEffects);
  const bool exists = toleration.op == TolerationOperator::Exists;
  if (!exists && toleration.key.empty()) out.add(path, "an empty key needs the operator Exists");
  if (exists && !toleration.value.empty()) out.add(path, "Exists must have no value");
}

void check_flows(const std::vector<SiteFlow>& flows, Problems& out) {
  out.size("spec.bandwidth", flows.size(), 16);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const std::string path = fmt::format("spec.bandwidth[{}]", i);
    if (flows[i].name.empty()) out.add(path + ".name", "give the flow a name");
    out.length(path + ".name", flows[i].name, 63);
    out.within(path + ".mbps", flows[i].mbps, 0, kMany);
    if (!seen.insert(flows[i].name).second) {
      out.add(path, "Duplicate value: {} is given twice", flows[i].name);
    }
  }
}

void check_weights(const std::vector<SiteWeight>& weights, Problems& out) {
  out.size("spec.weights", weights.size(), 16);
  std::set<std::pair<std::string, std::string>> seen;
  bool twice = false;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const SiteWeight& one = weights[i];
    const std::string path = fmt::format("spec.weights[{}]", i);
    if (!one.plugin.empty()) out.one_of(path + ".plugin", one.plugin, kSiteScorers);
    out.length(path + ".indicator", one.indicator, 63);
    out.within(path + ".weight", one.weight, 1, 1'000'000);
    if (one.plugin.empty() == one.indicator.empty()) {
      out.add(path, "give either plugin or indicator");
    }
    twice = twice || !seen.emplace(one.plugin, one.indicator).second;
  }
  if (twice) out.add("spec.weights", "nothing may be weighed twice");
}

void check(const PropagationSpec& propagation, Problems& out) {
  const std::string path = "spec.propagation";
  out.size(path + ".write", propagation.write.size(), 2);
  if (propagation.write.size() == 2 && propagation.write[0] == propagation.write[1]) {
    out.add(path + ".write[1]", "Duplicate value: the kind is given twice");
  }
  out.length(path + ".name", propagation.name, 253);
  if (!propagation.name.empty() && !is_object_name(propagation.name)) {
    out.add(path + ".name", "\"{}\" must be the name of an object", propagation.name);
  }
  out.size(path + ".resourceSelectors", propagation.resource_selectors.size(), 32);
  for (std::size_t i = 0; i < propagation.resource_selectors.size(); ++i) {
    const ResourceSelector& one = propagation.resource_selectors[i];
    const std::string place = fmt::format("{}.resourceSelectors[{}]", path, i);
    if (one.api_version.empty()) out.add(place + ".apiVersion", "name the version, as apps/v1");
    if (one.kind.empty()) out.add(place + ".kind", "name the kind, as Deployment");
    out.length(place + ".apiVersion", one.api_version, 317);
    out.length(place + ".kind", one.kind, 63);
    out.length(place + ".name", one.name, 253);
  }
  if (!propagation.write.empty() && propagation.resource_selectors.empty()) {
    out.add(path, "a policy needs resourceSelectors");
  }
}

}  // namespace

std::vector<std::string> validate(const SiteRecommendationSpec& spec) {
  Problems out;
  out.length("spec.region", spec.region, 63);
  out.length("spec.isp", spec.isp, 63);
  check_selector(spec.site_selector, "spec.siteSelector", 16, 32, out);
  out.within("spec.resources.cpuMillicores", spec.resources.cpu_millicores, 0, kMany);
  out.within("spec.resources.memoryMebibytes", spec.resources.memory_mebibytes, 0, kMany);
  out.within("spec.resources.gpus", spec.resources.gpus, 0, 1'000'000);
  out.within("spec.resources.ips", spec.resources.ips, 0, 1'000'000);
  check_flows(spec.bandwidth, out);
  out.within("spec.workloads", spec.workloads, 1, 1000);
  out.size("spec.tolerations", spec.tolerations.size(), 32);
  for (std::size_t i = 0; i < spec.tolerations.size(); ++i) {
    check(spec.tolerations[i], fmt::format("spec.tolerations[{}]", i), out);
  }
  out.size("spec.affinity.sites", spec.affinity.sites.size(), 64);
  for (const std::string& site : spec.affinity.sites) {
    out.length("spec.affinity.sites", site, 253);
  }
  check_selector(spec.affinity.site_selector, "spec.affinity.siteSelector", 16, 32, out);
  out.within("spec.count", spec.count, 1, 100);
  check_weights(spec.weights, out);
  check(spec.propagation, out);
  out.at_least("spec.interval", spec.interval, std::chrono::seconds{10});
  out.at_most("spec.interval", spec.interval, std::chrono::hours{24});
  return out.take();
}

}  // namespace kwatt::api
