// Which resources exist, and where the API server keeps them.
#include <fmt/format.h>

#include "kube/client.hpp"
#include "kube/path.hpp"

namespace kwatt::kube {
namespace resources {

#define KWATT_RESOURCE(function, group, version, plural, namespaced)    \
  const Resource& function() {                                          \
    static const Resource resource{group, version, plural, namespaced}; \
    return resource;                                                    \
  }

KWATT_RESOURCE(nodes, "", "v1", "nodes", false)
KWATT_RESOURCE(pods, "", "v1", "pods", true)
KWATT_RESOURCE(pod_disruption_budgets, "policy", "v1", "poddisruptionbudgets", true)
KWATT_RESOURCE(persistent_volume_claims, "", "v1", "persistentvolumeclaims", true)
KWATT_RESOURCE(persistent_volumes, "", "v1", "persistentvolumes", false)
KWATT_RESOURCE(volume_attachments, "storage.k8s.io", "v1", "volumeattachments", false)
KWATT_RESOURCE(replica_sets, "apps", "v1", "replicasets", true)
KWATT_RESOURCE(stateful_sets, "apps", "v1", "statefulsets", true)
KWATT_RESOURCE(leases, "coordination.k8s.io", "v1", "leases", true)
KWATT_RESOURCE(events, "events.k8s.io", "v1", "events", true)
KWATT_RESOURCE(secrets, "", "v1", "secrets", true)
KWATT_RESOURCE(token_reviews, "authentication.k8s.io", "v1", "tokenreviews", false)
KWATT_RESOURCE(subject_access_reviews, "authorization.k8s.io", "v1", "subjectaccessreviews", false)
KWATT_RESOURCE(energy_policies, "kwatt.dev", "v1alpha1", "energypolicies", false)
KWATT_RESOURCE(node_powers, "kwatt.dev", "v1alpha1", "nodepowers", false)
KWATT_RESOURCE(estimators, "kwatt.dev", "v1alpha1", "estimators", true)
KWATT_RESOURCE(sites, "kwatt.dev", "v1alpha1", "sites", false)
KWATT_RESOURCE(site_recommendations, "kwatt.dev", "v1alpha1", "siterecommendations", true)
KWATT_RESOURCE(propagation_policies, "policy.karmada.io", "v1alpha1", "propagationpolicies", true)
KWATT_RESOURCE(override_policies, "policy.karmada.io", "v1alpha1", "overridepolicies", true)
KWATT_RESOURCE(pod_templates, "", "v1", "podtemplates", true)
KWATT_RESOURCE(capacity_buffers, "autoscaling.x-k8s.io", "v1alpha1", "capacitybuffers", true)
KWATT_RESOURCE(node_health_checks, "remediation.medik8s.io", "v1alpha1", "nodehealthchecks", false)
KWATT_RESOURCE(wao_estimators, "waofed.bitmedia.co.jp", "v1beta1", "estimators", true)

#undef KWATT_RESOURCE

}  // namespace resources

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char byte : text) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
                       byte == '~';
    if (plain) {
      out.push_back(byte);
    } else {
      const auto value = static_cast<unsigned char>(byte);
      out.push_back('%');
      out.push_back(kHex[value >> 4]);
      out.push_back(kHex[value & 15]);
    }
  }
  return out;
}

std::string path_of(const Resource& resource, const std::string& namespace_name,
                    const std::string& name, const std::string& subresource) {
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", resource.group, resource.version);
  if (resource.namespaced && !namespace_name.empty()) {
    path += "/namespaces/" + percent_encode(namespace_name);
  }
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + percent_encode(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

}  // namespace kwatt::kube
