#include "api/karmada.hpp"

#include "api/json_writer.hpp"

namespace kwatt::api {
namespace {

// Up to the open spec, which has the resources already.
void begin_policy(JsonWriter& out, std::string_view kind, const SiteRecommendation& by) {
  out.begin().text("apiVersion", "policy.karmada.io/v1alpha1").text("kind", kind);
  out.begin("metadata").text("name", policy_name(by));
  out.text_unless_empty("namespace", by.meta.namespace_name);
  out.begin("labels").text("app.kubernetes.io/managed-by", "kwatt").end();
  // It goes with the recommendation.
  out.begin_list("ownerReferences").begin().text("apiVersion", "kwatt.dev/v1alpha1");
  out.text("kind", "SiteRecommendation").text("name", by.meta.name).text("uid", by.meta.uid);
  out.key("controller").boolean(true).end().end_list().end();
  out.begin("spec").begin_list("resourceSelectors");
  for (const ResourceSelector& one : by.spec.propagation.resource_selectors) {
    out.begin().text("apiVersion", one.api_version).text("kind", one.kind);
    out.text_unless_empty("namespace", by.meta.namespace_name);
    out.text_unless_empty("name", one.name).end();
  }
  out.end_list();
}

void cluster(JsonWriter& out, std::string_view name) {
  out.begin_list("clusterNames").text(name).end_list();
}

}  // namespace

std::string policy_name(const SiteRecommendation& recommendation) {
  const std::string& name = recommendation.spec.propagation.name;
  return name.empty() ? recommendation.meta.name : name;
}

std::string propagation_policy(const SiteRecommendation& recommendation,
                               const std::vector<ClusterWeight>& weights) {
  JsonWriter out;
  begin_policy(out, "PropagationPolicy", recommendation);
  out.begin("placement").begin("clusterAffinity").begin_list("clusterNames");
  for (const ClusterWeight& one : weights) {
    if (!one.cluster.empty()) out.text(one.cluster);
  }
  out.end_list().end();
  out.begin("replicaScheduling").text("replicaSchedulingType", "Divided");
  out.text("replicaDivisionPreference", "Weighted").begin("weightPreference");
  out.begin_list("staticWeightList");
  for (const ClusterWeight& one : weights) {
    if (one.cluster.empty()) continue;
    out.begin().begin("targetCluster");
    cluster(out, one.cluster);
    out.end().key("weight").integer(one.weight).end();
  }
  out.end_list().end().end().end().end().end();
  return out.take();
}

std::string override_policy(const SiteRecommendation& recommendation,
                            const std::vector<ClusterWeight>& weights) {
  JsonWriter out;
  begin_policy(out, "OverridePolicy", recommendation);
  out.begin_list("overrideRules");
  for (const ClusterWeight& one : weights) {
    if (one.cluster.empty()) continue;
    out.begin().begin("targetCluster");
    cluster(out, one.cluster);
    out.end().begin("overriders").begin_list("annotationsOverrider");
    out.begin().text("operator", "add").begin("value").text(kSiteAnnotation, one.site).end().end();
    out.end_list().end().end();
  }
  out.end_list().end().end();
  return out.take();
}

}  // namespace kwatt::api
