// The JSON shape of SiteRecommendation. crds/siterecommendations.yaml says the same; a test
// compares them.
#include "api/describe_meta.hpp"
#include "api/describe_site.hpp"
#include "api/site_recommendation.hpp"

namespace kwatt::api {

template <>
struct Words<TolerationOperator> {
  static constexpr std::array<std::string_view, 2> words{"Equal", "Exists"};
};
template <>
struct Words<Prefer> {
  static constexpr std::array<std::string_view, 2> words{"High", "Low"};
};
template <>
struct Words<Normalize> {
  static constexpr std::array<std::string_view, 3> words{"MinMax", "Sum", "None"};
};

std::string_view to_string(Normalize normalize) {
  return word_of(normalize);
}

template <>
struct Words<SiteAction> {
  static constexpr std::array<std::string_view, 2> words{"Recommend", "Create"};
};
template <>
struct Words<PropagationWrite> {
  static constexpr std::array<std::string_view, 2> words{"PropagationPolicy", "OverridePolicy"};
};
template <>
struct Words<CreatePhase> {
  static constexpr std::array<std::string_view, 3> words{"Intended", "Started", "Failed"};
};

// ---- spec: every setting is written.
template <>
struct Describe<SiteToleration> {
  static constexpr std::string_view name = "SiteToleration";
  static constexpr auto fields = std::array{
      written<&SiteToleration::key>("key"), written<&SiteToleration::op>("operator"),
      written<&SiteToleration::value>("value"), written<&SiteToleration::effect>("effect")};
};

template <>
struct Describe<SiteFlow> {
  static constexpr std::string_view name = "SiteFlow";
  static constexpr auto fields =
      std::array{written<&SiteFlow::name>("name"), written<&SiteFlow::mbps>("mbps")};
};

template <>
struct Describe<SiteAffinity> {
  static constexpr std::string_view name = "SiteAffinity";
  static constexpr auto fields = std::array{written<&SiteAffinity::sites>("sites"),
                                            written<&SiteAffinity::site_selector>("siteSelector")};
};

template <>
struct Describe<SiteWeight> {
  static constexpr std::string_view name = "SiteWeight";
  static constexpr auto fields = std::array{
      written<&SiteWeight::plugin>("plugin"), written<&SiteWeight::indicator>("indicator"),
      written<&SiteWeight::weight>("weight"), written<&SiteWeight::prefer>("prefer")};
};

template <>
struct Describe<ResourceSelector> {
  static constexpr std::string_view name = "ResourceSelector";
  static constexpr auto fields = std::array{written<&ResourceSelector::api_version>("apiVersion"),
                                            written<&ResourceSelector::kind>("kind"),
                                            written<&ResourceSelector::name>("name")};
};

template <>
struct Describe<PropagationSpec> {
  static constexpr std::string_view name = "PropagationSpec";
  static constexpr auto fields =
      std::array{written<&PropagationSpec::write>("write"), written<&PropagationSpec::name>("name"),
                 written<&PropagationSpec::resource_selectors>("resourceSelectors")};
};

template <>
struct Describe<SiteRecommendationSpec> {
  static constexpr std::string_view name = "SiteRecommendationSpec";
  static constexpr auto fields =
      std::array{written<&SiteRecommendationSpec::region>("region"),
                 written<&SiteRecommendationSpec::isp>("isp"),
                 written<&SiteRecommendationSpec::site_selector>("siteSelector"),
                 written<&SiteRecommendationSpec::resources>("resources"),
                 written<&SiteRecommendationSpec::bandwidth>("bandwidth"),
                 written<&SiteRecommendationSpec::workloads>("workloads"),
                 written<&SiteRecommendationSpec::tolerations>("tolerations"),
                 written<&SiteRecommendationSpec::affinity>("affinity"),
                 written<&SiteRecommendationSpec::count>("count"),
                 written<&SiteRecommendationSpec::weights>("weights"),
                 written<&SiteRecommendationSpec::normalize>("normalize"),
                 written<&SiteRecommendationSpec::action>("action"),
                 written<&SiteRecommendationSpec::propagation>("propagation"),
                 written<&SiteRecommendationSpec::interval>("interval")};
};

// ---- status: what says nothing is left out, but the columns.
template <>
struct Describe<SiteScore> {
  static constexpr std::string_view name = "SiteScore";
  static constexpr auto fields = std::array{written<&SiteScore::name>("name"),
                                            written<&SiteScore::raw>("raw"),
                                            written<&SiteScore::normalized>("normalized"),
                                            written<&SiteScore::weight>("weight"),
                                            written<&SiteScore::weighted>("weighted"),
                                            field<&SiteScore::message>("message")};
};

template <>
struct Describe<RankedSite> {
  static constexpr std::string_view name = "RankedSite";
  static constexpr auto fields =
      std::array{written<&RankedSite::name>("name"), written<&RankedSite::total>("total"),
                 field<&RankedSite::recommended>("recommended"),
                 field<&RankedSite::affinity>("affinity"), field<&RankedSite::scores>("scores")};
};

template <>
struct Describe<ExcludedSite> {
  static constexpr std::string_view name = "ExcludedSite";
  static constexpr auto fields =
      std::array{written<&ExcludedSite::name>("name"), field<&ExcludedSite::plugin>("plugin"),
                 field<&ExcludedSite::reason>("reason"),
                 field<&ExcludedSite::total_if_tolerated>("totalIfTolerated")};
};

template <>
struct Describe<ClusterWeight> {
  static constexpr std::string_view name = "ClusterWeight";
  static constexpr auto fields =
      std::array{written<&ClusterWeight::site>("site"), field<&ClusterWeight::cluster>("cluster"),
                 written<&ClusterWeight::weight>("weight")};
};

template <>
struct Describe<CreatedMachine> {
  static constexpr std::string_view name = "CreatedMachine";
  static constexpr auto fields = std::array{written<&CreatedMachine::site>("site"),
                                            field<&CreatedMachine::operation_id>("operationID"),
                                            written<&CreatedMachine::phase>("phase"),
                                            field<&CreatedMachine::machine_id>("machineID"),
                                            field<&CreatedMachine::message>("message"),
                                            field<&CreatedMachine::attempts>("attempts"),
                                            field<&CreatedMachine::intended_at>("intendedAt"),
                                            field<&CreatedMachine::started_at>("startedAt"),
                                            field<&CreatedMachine::next_attempt>("nextAttempt")};
};

template <>
struct Describe<SiteRecommendationStatus> {
  static constexpr std::string_view name = "SiteRecommendationStatus";
  static constexpr auto fields =
      std::array{field<&SiteRecommendationStatus::observed_generation>("observedGeneration"),
                 field<&SiteRecommendationStatus::conditions>("conditions"),
                 field<&SiteRecommendationStatus::evaluated_at>("evaluatedAt"),
                 field<&SiteRecommendationStatus::site>("site"),
                 field<&SiteRecommendationStatus::total>("total"),
                 field<&SiteRecommendationStatus::sites>("sites"),
                 written<&SiteRecommendationStatus::sites_total>("sitesTotal"),
                 field<&SiteRecommendationStatus::excluded>("excluded"),
                 written<&SiteRecommendationStatus::excluded_total>("excludedTotal"),
                 field<&SiteRecommendationStatus::weights>("weights"),
                 field<&SiteRecommendationStatus::machines>("machines"),
                 field<&SiteRecommendationStatus::notes>("notes")};
};

template <>
struct Describe<SiteRecommendation> {
  static constexpr std::string_view name = "SiteRecommendation";
  static constexpr std::string_view api_version = "kwatt.dev/v1alpha1";
  static constexpr std::string_view object_kind = "SiteRecommendation";
  static constexpr auto fields = std::array{field<&SiteRecommendation::meta>("metadata"),
                                            written<&SiteRecommendation::spec>("spec"),
                                            field<&SiteRecommendation::status>("status")};
};

template const TypeInfo& type_of<SiteFlow>();
template const TypeInfo& type_of<SiteRecommendationSpec>();
template const TypeInfo& type_of<SiteRecommendationStatus>();
template const TypeInfo& type_of<SiteRecommendation>();

}  // namespace kwatt::api
