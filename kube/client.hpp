#pragma once
// The Kubernetes API, typed by what the callers here do with it. Implemented over net/ by
// make_client(); tests script their own.
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "kube/config.hpp"
#include "net/client.hpp"

namespace kwatt::kube {

template <class T>
using Task = net::Task<T>;

// A resource type as the API server names it, e.g. {"", "v1", "nodes"} or
// {"kwatt.dev", "v1alpha1", "energypolicies"}.
struct Resource {
  std::string group, version, plural;
  bool namespaced = false;
};

namespace resources {
const Resource& nodes();
const Resource& pods();
const Resource& pod_disruption_budgets();
const Resource& persistent_volume_claims();
const Resource& persistent_volumes();
const Resource& volume_attachments();
const Resource& replica_sets();
const Resource& stateful_sets();
const Resource& leases();
const Resource& events();
const Resource& secrets();
const Resource& token_reviews();
const Resource& subject_access_reviews();
const Resource& energy_policies();
const Resource& node_powers();
const Resource& estimators();
const Resource& sites();
const Resource& site_recommendations();
// Of others; the API server may not have them.
const Resource& pod_templates();
const Resource& capacity_buffers();
const Resource& node_health_checks();
const Resource& wao_estimators();
const Resource& propagation_policies();
const Resource& override_policies();
}  // namespace resources

// Constructors, because GCC 12 copies an aggregate's braces inside `co_await f({"", name})` bit by
// bit, which breaks its strings.
struct Name {
  Name() = default;
  Name(std::string in_namespace, std::string own)
      : namespace_name(std::move(in_namespace)), name(std::move(own)) {}
  std::string namespace_name;  // "" for cluster-scoped
  std::string name;
};

// All answers are the response bodies (JSON). Errors carry the code that the metav1.Status maps to
// (base/result.hpp) and its message as server_text. 429 and 5xx with Retry-After are retried inside
// (at most 10 times, idempotent requests only, each passing the rate limiter again) except for
// evict(), whose 429 means "not now" and is the caller's business.
class Client {
 public:
  virtual ~Client() = default;

  virtual Task<Result<std::string>> get(const Resource& resource, Name name) = 0;
  // Creates; POST is never repeated blindly after a transport error.
  virtual Task<Result<std::string>> create(const Resource& resource, std::string namespace_name,
                                           std::string body) = 0;
  // PUT with the resourceVersion inside `body`; conflict: somebody else wrote first.
  virtual Task<Result<std::string>> replace(const Resource& resource, Name name,
                                            std::string body) = 0;
  virtual Task<Result<std::string>> replace_status(const Resource& resource, Name name,
                                                   std::string body) = 0;
  enum class PatchType { json, merge, apply };
  // apply: server-side apply, forced, with `field_manager`; send every owned field each time.
  // subresource: "" or "status".
  virtual Task<Result<std::string>> patch(const Resource& resource, Name name, PatchType type,
                                          std::string field_manager, std::string subresource,
                                          std::string body) = 0;
  virtual Task<Result<void>> remove(const Resource& resource, Name name,
                                    std::string precondition_uid) = 0;
  // Eviction with precondition uid. ok: accepted or already gone (404, or another uid: the pod of
  // the plan is gone). too_many_requests: a PodDisruptionBudget forbids it now; server_text says
  // which. internal: several budgets or a broken one: report, do not hammer.
  virtual Task<Result<void>> evict(Name pod, std::string uid) = 0;

  // Binds a pending pod to a node (POST pods/NAME/binding). conflict: it is bound already, is being
  // deleted, or is not the pod of this uid.
  virtual Task<Result<void>> bind(Name pod, std::string uid, std::string node) = 0;

  // The raw streaming door for list and watch: GET `path_and_query` on a connection of its own. The
  // stream is returned whatever its status is (parse an error body with kube/status_error.hpp), and
  // nothing is retried: the caller has its own backoff.
  virtual Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string path_and_query) = 0;
};

struct ClientOptions {
  std::string user_agent = "kwatt";
  double queries_per_second = 50;
  int burst = 100;
  Duration request_timeout = std::chrono::seconds{30};
  Metrics* metrics = nullptr;  // outlives the client; counts rest_client_requests_total
};

std::unique_ptr<Client> make_client(boost::asio::any_io_executor executor, const Config& config,
                                    ClientOptions options, const Clock& clock);

// "/api/v1/nodes", "/apis/kwatt.dev/v1alpha1/energypolicies/x/status", …
std::string path_of(const Resource& resource, const std::string& namespace_name,
                    const std::string& name = {}, const std::string& subresource = {});

}  // namespace kwatt::kube
