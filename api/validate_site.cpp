// The rules of Site: those of crds/sites.yaml once more.
#include <set>

#include "api/problems.hpp"
#include "api/site.hpp"
#include "api/validate_parts.hpp"

namespace kwatt::api {
namespace {

constexpr std::int64_t kMany = 1'000'000'000;
constexpr std::int64_t kPieces = 1'000'000;

void check(const SiteResources& amount, const std::string& path, Problems& out) {
  out.within(path + ".cpuMillicores", amount.cpu_millicores, 0, kMany);
  out.within(path + ".memoryMebibytes", amount.memory_mebibytes, 0, kMany);
  out.within(path + ".gpus", amount.gpus, 0, kPieces);
  out.within(path + ".ips", amount.ips, 0, kPieces);
}

void check(const SiteTaint& taint, const std::string& path, Problems& out) {
  if (taint.key.empty()) out.add(path + ".key", "say what the taint is about");
  out.length(path + ".key", taint.key, 317);
  out.length(path + ".value", taint.value, 63);
}

void check_indicators(const std::vector<SiteIndicator>& indicators, Problems& out) {
  out.size("spec.indicators", indicators.size(), 64);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < indicators.size(); ++i) {
    const std::string path = fmt::format("spec.indicators[{}]", i);
    if (indicators[i].name.empty()) out.add(path + ".name", "give the value a name");
    out.length(path + ".name", indicators[i].name, 63);
    out.within(path + ".value", indicators[i].value, -kMany, kMany);
    if (!seen.insert(indicators[i].name).second) {
      out.add(path, "Duplicate value: {} is given twice", indicators[i].name);
    }
  }
}

void check_metrics(const std::vector<SiteMetric>& metrics, Problems& out) {
  out.size("spec.metrics", metrics.size(), kSiteMetricValues);
  std::set<SiteMetricValue> seen;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const std::string path = fmt::format("spec.metrics[{}]", i);
    if (metrics[i].query.empty()) out.add(path + ".query", "write PromQL that gives one number");
    out.length(path + ".query", metrics[i].query, 4096);
    if (!seen.insert(metrics[i].value).second) {
      out.add(path, "Duplicate value: {} is given twice", to_string(metrics[i].value));
    }
  }
}

void check_name(std::string_view name, const std::string& path, std::string_view of,
                std::size_t limit, Problems& out) {
  out.length(path, name, limit);
  if (!name.empty() && !is_object_name(name)) {
    out.add(path, "\"{}\" must be the name of {}", name, of);
  }
}

void check(const SiteCluster& cluster, Problems& out) {
  check_name(cluster.name, "spec.cluster.name", "a member cluster", 253, out);
  check_secret(cluster.kubeconfig_secret_ref, "spec.cluster.kubeconfigSecretRef", out);
  if (cluster.access == ClusterAccess::KubeconfigSecret &&
      cluster.kubeconfig_secret_ref.name.empty()) {
    out.add("spec.cluster", "access KubeconfigSecret needs kubeconfigSecretRef.name");
  }
  if (cluster.access == ClusterAccess::KarmadaProxy && cluster.name.empty()) {
    out.add("spec.cluster", "access KarmadaProxy needs the name of the member cluster");
  }
}

// As the CRD's pattern says it: a scheme, a host, and maybe a path.
bool is_root_url(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = url.substr(scheme.size());
    return !rest.empty() && rest.front() != '/' &&
           rest.find_first_of("?# \t\n\r\f") == std::string_view::npos;
  }
  return false;
}

void check(const SiteEstimator& estimator, Problems& out) {
  check_name(estimator.namespace_name, "spec.estimator.namespace", "a namespace", 63, out);
  check_name(estimator.name, "spec.estimator.name", "an Estimator", 253, out);
  out.length("spec.estimator.url", estimator.url, 1024);
  if (!estimator.url.empty() && !is_root_url(estimator.url)) {
    out.add("spec.estimator.url",
            "\"{}\" must be an http or https URL without query, such as "
            "https://estimator.example.org",
            estimator.url);
  }
  const EstimatorService& service = estimator.service;
  check_name(service.namespace_name, "spec.estimator.service.namespace", "a namespace", 63, out);
  check_name(service.name, "spec.estimator.service.name", "a Service", 63, out);
  out.within("spec.estimator.service.port", service.port, 1, 65'535);
  if (service.name.empty() != service.namespace_name.empty()) {
    out.add("spec.estimator.service", "name the Service with its namespace");
  }
  check_secret(estimator.api_key_secret_ref, "spec.estimator.apiKeySecretRef", out);
  if (!estimator.url.empty() && !service.name.empty()) {
    out.add("spec.estimator", "give url or service, not both");
  }
  if (estimator.given() && (estimator.name.empty() || estimator.namespace_name.empty())) {
    out.add("spec.estimator", "name the Estimator object with namespace and name");
  }
}

}  // namespace

std::vector<std::string> validate(const SiteSpec& spec) {
  Problems out;
  out.length("spec.region", spec.region, 63);
  out.length("spec.isp", spec.isp, 63);
  out.size("spec.partitionLabels", spec.partition_labels.size(), 64);
  for (const auto& [label, value] : spec.partition_labels) {
    out.length(fmt::format("spec.partitionLabels[{}]", label), value, 63);
  }
  out.size("spec.taints", spec.taints.size(), 32);
  for (std::size_t i = 0; i < spec.taints.size(); ++i) {
    check(spec.taints[i], fmt::format("spec.taints[{}]", i), out);
  }
  check(spec.capacity, "spec.capacity", out);
  check(spec.allocated, "spec.allocated", out);
  out.within("spec.bandwidth.totalMbps", spec.bandwidth.total_mbps, 0, kMany);
  out.within("spec.bandwidth.usedMbps", spec.bandwidth.used_mbps, 0, kMany);
  check_indicators(spec.indicators, out);
  out.length("spec.carbon.zone", spec.carbon.zone, 63);
  out.within("spec.carbon.gramsPerKWh", spec.carbon.grams_per_kwh, 0, 5000);
  out.within("spec.cpuOverloadPercent", spec.cpu_overload_percent, 1, 100);
  check_metrics(spec.metrics, out);
  check(spec.cluster, out);
  check(spec.estimator, out);
  out.length("spec.createHook", spec.create_hook, 63);
  return out.take();
}

}  // namespace kwatt::api
