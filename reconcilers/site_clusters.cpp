#include "reconcilers/site_clusters.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "kube/path.hpp"
#include "reconcilers/drivers.hpp"

namespace kwatt::reconcilers {
namespace {

// A rotated kubeconfig counts after this long.
constexpr auto kKeep = std::chrono::minutes{1};
constexpr const char* kKey = "kubeconfig";

}  // namespace

Result<kube::Config> parse_member_kubeconfig(const std::string& yaml) {
  auto config = kube::parse_kubeconfig({{"", yaml}});
  if (!config) return config;
  const std::pair<const char*, const std::string*> files[] = {
      {"certificate-authority", &config->certificate_authority.file},
      {"client-certificate", &config->client_certificate.file},
      {"client-key", &config->client_key.file},
      {"tokenFile", &config->token_file}};
  for (const auto& [field, file] : files) {
    if (file->empty()) continue;
    return fail(ErrorCode::forbidden,
                fmt::format("the kubeconfig names a file in {}: put its content inline", field));
  }
  return config;
}

SiteClusters::SiteClusters(boost::asio::any_io_executor executor, kube::Client& client,
                           kube::Send own, std::string secret_namespace, const Clock& clock)
    : executor_(std::move(executor)),
      client_(client),
      own_(std::move(own)),
      secret_namespace_(std::move(secret_namespace)),
      clock_(clock) {}

kube::Task<Result<std::string>> SiteClusters::secret(std::string name, std::string key) {
  const std::string what = fmt::format("Secret {}/{}", secret_namespace_, name);
  kube::Name place(secret_namespace_, name);
  auto body = co_await client_.get(kube::resources::secrets(), place);
  if (!body) co_return body.error().with_context(what);
  auto keys = decode_secret(*body);
  if (!keys) co_return keys.error().with_context(what);
  const auto found = keys->find(key);
  if (found == keys->end() || found->second.empty()) {
    co_return fail(ErrorCode::not_found, fmt::format("{} needs the key {}", what, key));
  }
  co_return found->second;
}

kube::Task<Result<ClusterApi>> SiteClusters::of(std::shared_ptr<const api::Site> site) {
  const api::SiteCluster& cluster = site->spec.cluster;
  ClusterApi result{own_, ""};
  if (cluster.access == api::ClusterAccess::None) co_return result;
  if (cluster.access == api::ClusterAccess::KarmadaProxy) {
    result.prefix = fmt::format("/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy",
                                kube::percent_encode(cluster.name));
    co_return result;
  }
  const std::string name = cluster.kubeconfig_secret_ref.name;
  if (const auto kept = entries_.find(name);
      kept != entries_.end() && clock_.monotonic() - kept->second.read_at < kKeep) {
    co_return kept->second.api;
  }
  auto text = co_await secret(name, kKey);
  if (!text) co_return text.error();
  Entry& entry = entries_[name];
  entry.read_at = clock_.monotonic();
  // The same text keeps its connections.
  if (entry.kubeconfig == *text && entry.api.send) co_return entry.api;
  auto config = parse_member_kubeconfig(*text);
  if (!config) {
    entries_.erase(name);
    co_return config.error().with_context(
        fmt::format("Secret {}/{}, key {}", secret_namespace_, name, kKey));
  }
  entry.kubeconfig = std::move(*text);
  entry.api.send =
      kube::make_send(executor_, *config, std::string("kwatt-controller/") + KWATT_VERSION, clock_);
  co_return entry.api;
}

}  // namespace kwatt::reconcilers
