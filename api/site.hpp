#pragma once
// Site (kwatt.dev/v1alpha1, cluster-scoped, short name sit): a room of a data centre, or a member
// cluster, as far as the choice between such places is about it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/time.hpp"

namespace kwatt::api {

enum class SiteKind { Edge, Core };
enum class TaintEffect { NoSchedule, PreferNoSchedule, NoExecute };
// How the API of a member cluster is reached.
enum class ClusterAccess { None, KubeconfigSecret, KarmadaProxy };
// How the Service of an estimator is reached, seen from its cluster's API.
enum class ServiceAccess { Proxy, ExternalDNS, ServiceExport };
// What a query to Prometheus can stand for.
enum class SiteMetricValue {
  CpuUtilizationPercent,
  CpuAllocatedMillicores,
  MemoryAllocatedMebibytes,
  GpusAllocated,
  IpsAllocated,
  BandwidthTotalMbps,
  BandwidthUsedMbps,
  CarbonGramsPerKWh
};
inline constexpr std::size_t kSiteMetricValues = 8;

struct SiteTaint {
  std::string key, value;
  TaintEffect effect = TaintEffect::NoSchedule;
  bool operator==(const SiteTaint&) const = default;
};

// Amounts of everything that a workload can ask of a site.
struct SiteResources {
  std::int64_t cpu_millicores = 0, memory_mebibytes = 0, gpus = 0, ips = 0;
  bool operator==(const SiteResources&) const = default;
};

struct SiteBandwidth {
  std::int64_t total_mbps = 0, used_mbps = 0;  // megabits per second; total 0: not known
  bool operator==(const SiteBandwidth&) const = default;
};

struct SiteIndicator {
  std::string name;
  std::int64_t value = 0;
  bool operator==(const SiteIndicator&) const = default;
};

struct SiteCarbon {
  std::string zone;
  std::int64_t grams_per_kwh = 0;  // 0: not known
  bool operator==(const SiteCarbon&) const = default;
};

struct SiteMetric {
  SiteMetricValue value = SiteMetricValue::CpuUtilizationPercent;
  std::string query;  // PromQL that gives one series
  bool operator==(const SiteMetric&) const = default;
};

struct SiteCluster {
  std::string name;  // as Karmada calls the member
  ClusterAccess access = ClusterAccess::None;
  SecretReference kubeconfig_secret_ref;  // key "kubeconfig"
  bool operator==(const SiteCluster&) const = default;
};

struct EstimatorService {
  std::string namespace_name, name;
  std::int64_t port = 5656;
  ServiceAccess via = ServiceAccess::Proxy;
  bool operator==(const EstimatorService&) const = default;
};

struct SiteEstimator {
  std::string namespace_name, name;  // of the Estimator object
  std::string url;                   // root of its HTTP API; "": through `service`
  EstimatorService service;
  SecretReference api_key_secret_ref;  // key "apiKey"
  bool operator==(const SiteEstimator&) const = default;
  bool given() const { return !url.empty() || !service.name.empty(); }
};

struct SiteSpec {
  std::string region, isp;
  SiteKind kind = SiteKind::Edge;
  StringMap partition_labels;
  bool available = true;
  std::vector<SiteTaint> taints;
  SiteResources capacity, allocated;
  SiteBandwidth bandwidth;
  std::vector<SiteIndicator> indicators;
  SiteCarbon carbon;
  std::int64_t cpu_overload_percent = 90;
  std::vector<SiteMetric> metrics;
  SiteCluster cluster;
  SiteEstimator estimator;
  std::string create_hook;  // a name that the operator gave with --site-hook
  bool operator==(const SiteSpec&) const = default;
};

// A value that a query gave.
struct SiteReading {
  SiteMetricValue value = SiteMetricValue::CpuUtilizationPercent;
  std::int64_t amount = 0;
  std::optional<TimePoint> time;  // when it was read
  bool operator==(const SiteReading&) const = default;
};

struct SiteStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;  // Ready, MetricsAvailable
  std::vector<SiteReading> readings;
  SiteResources free;  // capacity less what is allocated, as the recommendations count it
  std::int64_t free_bandwidth_mbps = 0;
  std::int64_t cpu_load_percent = 0;
  bool operator==(const SiteStatus&) const = default;
};

struct Site {
  ObjectMeta meta;
  SiteSpec spec;
  SiteStatus status;
};

std::string_view to_string(TaintEffect effect);
std::string_view to_string(SiteMetricValue value);

std::vector<std::string> validate(const SiteSpec& spec);

}  // namespace kwatt::api
