// The JSON shape of Site. crds/sites.yaml says the same; a test compares them.
#include "api/describe_site.hpp"

#include "api/describe_meta.hpp"

namespace kwatt::api {

template <>
struct Words<SiteKind> {
  static constexpr std::array<std::string_view, 2> words{"Edge", "Core"};
};
template <>
struct Words<TaintEffect> {
  static constexpr std::array<std::string_view, 3> words{"NoSchedule", "PreferNoSchedule",
                                                         "NoExecute"};
};

std::string_view to_string(TaintEffect effect) {
  return word_of(effect);
}

template <>
struct Words<ClusterAccess> {
  static constexpr std::array<std::string_view, 3> words{"None", "KubeconfigSecret",
                                                         "KarmadaProxy"};
};
template <>
struct Words<ServiceAccess> {
  static constexpr std::array<std::string_view, 3> words{"Proxy", "ExternalDNS", "ServiceExport"};
};
template <>
struct Words<SiteMetricValue> {
  static constexpr std::array<std::string_view, 8> words{
      "CpuUtilizationPercent", "CpuAllocatedMillicores", "MemoryAllocatedMebibytes",
      "GpusAllocated",         "IpsAllocated",           "BandwidthTotalMbps",
      "BandwidthUsedMbps",     "CarbonGramsPerKWh"};
};

std::string_view to_string(SiteMetricValue value) {
  return word_of(value);
}

// ---- spec: every setting is written.
template <>
struct Describe<SiteTaint> {
  static constexpr std::string_view name = "SiteTaint";
  static constexpr auto fields =
      std::array{written<&SiteTaint::key>("key"), written<&SiteTaint::value>("value"),
                 written<&SiteTaint::effect>("effect")};
};

template <>
struct Describe<SiteBandwidth> {
  static constexpr std::string_view name = "SiteBandwidth";
  static constexpr auto fields = std::array{written<&SiteBandwidth::total_mbps>("totalMbps"),
                                            written<&SiteBandwidth::used_mbps>("usedMbps")};
};

template <>
struct Describe<SiteIndicator> {
  static constexpr std::string_view name = "SiteIndicator";
  static constexpr auto fields =
      std::array{written<&SiteIndicator::name>("name"), written<&SiteIndicator::value>("value")};
};

template <>
struct Describe<SiteCarbon> {
  static constexpr std::string_view name = "SiteCarbon";
  static constexpr auto fields = std::array{written<&SiteCarbon::zone>("zone"),
                                            written<&SiteCarbon::grams_per_kwh>("gramsPerKWh")};
};

template <>
struct Describe<SiteMetric> {
  static constexpr std::string_view name = "SiteMetric";
  static constexpr auto fields =
      std::array{written<&SiteMetric::value>("value"), written<&SiteMetric::query>("query")};
};

template <>
struct Describe<SiteCluster> {
  static constexpr std::string_view name = "SiteCluster";
  static constexpr auto fields =
      std::array{written<&SiteCluster::name>("name"), written<&SiteCluster::access>("access"),
                 written<&SiteCluster::kubeconfig_secret_ref>("kubeconfigSecretRef")};
};

template <>
struct Describe<EstimatorService> {
  static constexpr std::string_view name = "EstimatorService";
  static constexpr auto fields =
      std::array{written<&EstimatorService::namespace_name>("namespace"),
                 written<&EstimatorService::name>("name"), written<&EstimatorService::port>("port"),
                 written<&EstimatorService::via>("via")};
};

template <>
struct Describe<SiteEstimator> {
  static constexpr std::string_view name = "SiteEstimator";
  static constexpr auto fields = std::array{
      written<&SiteEstimator::namespace_name>("namespace"), written<&SiteEstimator::name>("name"),
      written<&SiteEstimator::url>("url"), written<&SiteEstimator::service>("service"),
      written<&SiteEstimator::api_key_secret_ref>("apiKeySecretRef")};
};

template <>
struct Describe<SiteSpec> {
  static constexpr std::string_view name = "SiteSpec";
  static constexpr auto fields =
      std::array{written<&SiteSpec::region>("region"),
                 written<&SiteSpec::isp>("isp"),
                 written<&SiteSpec::kind>("kind"),
                 written<&SiteSpec::partition_labels>("partitionLabels"),
                 written<&SiteSpec::available>("available"),
                 written<&SiteSpec::taints>("taints"),
                 written<&SiteSpec::capacity>("capacity"),
                 written<&SiteSpec::allocated>("allocated"),
                 written<&SiteSpec::bandwidth>("bandwidth"),
                 written<&SiteSpec::indicators>("indicators"),
                 written<&SiteSpec::carbon>("carbon"),
                 written<&SiteSpec::cpu_overload_percent>("cpuOverloadPercent"),
                 written<&SiteSpec::metrics>("metrics"),
                 written<&SiteSpec::cluster>("cluster"),
                 written<&SiteSpec::estimator>("estimator"),
                 written<&SiteSpec::create_hook>("createHook")};
};

// ---- status: what says nothing is left out, but the columns.
template <>
struct Describe<SiteReading> {
  static constexpr std::string_view name = "SiteReading";
  static constexpr auto fields =
      std::array{written<&SiteReading::value>("value"), written<&SiteReading::amount>("amount"),
                 field<&SiteReading::time>("time")};
};

template <>
struct Describe<SiteStatus> {
  static constexpr std::string_view name = "SiteStatus";
  static constexpr auto fields =
      std::array{field<&SiteStatus::observed_generation>("observedGeneration"),
                 field<&SiteStatus::conditions>("conditions"),
                 field<&SiteStatus::readings>("readings"),
                 written<&SiteStatus::free>("free"),
                 written<&SiteStatus::free_bandwidth_mbps>("freeBandwidthMbps"),
                 written<&SiteStatus::cpu_load_percent>("cpuLoadPercent")};
};

template <>
struct Describe<Site> {
  static constexpr std::string_view name = "Site";
  static constexpr std::string_view api_version = "kwatt.dev/v1alpha1";
  static constexpr std::string_view object_kind = "Site";
  static constexpr auto fields = std::array{
      field<&Site::meta>("metadata"), written<&Site::spec>("spec"), field<&Site::status>("status")};
};

template const TypeInfo& type_of<SiteResources>();
template const TypeInfo& type_of<SiteSpec>();
template const TypeInfo& type_of<SiteStatus>();
template const TypeInfo& type_of<Site>();

}  // namespace kwatt::api
