#pragma once
// The policies of Karmada (policy.karmada.io/v1alpha1) that follow a recommendation, as bodies of
// server-side apply. Only weights of sites with a cluster count; pure.
#include <string>
#include <vector>

#include "api/site_recommendation.hpp"

namespace kwatt::api {

// Annotation of every propagated object in a member cluster: the site that the cluster is.
inline constexpr std::string_view kSiteAnnotation = "kwatt.dev/site";

// What the policies are called: spec.propagation.name, or the recommendation's own name.
std::string policy_name(const SiteRecommendation& recommendation);

// Replicas are divided among the clusters by static weights, objects without replicas copied.
std::string propagation_policy(const SiteRecommendation& recommendation,
                               const std::vector<ClusterWeight>& weights);
// Each cluster's copy is annotated with its site.
std::string override_policy(const SiteRecommendation& recommendation,
                            const std::vector<ClusterWeight>& weights);

}  // namespace kwatt::api
