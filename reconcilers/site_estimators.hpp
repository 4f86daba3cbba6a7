#pragma once
// Asks the estimators of sites how much more power workloads would draw there (the HTTP API that
// WAO's clients know: POST /namespaces/{ns}/estimators/{name}/values/powerconsumption).
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "net/allow_list.hpp"
#include "placement/sites/site_view.hpp"
#include "reconcilers/site_clusters.hpp"

namespace kwatt::reconcilers {

struct EstimatorQuestion {
  std::int64_t cpu_milli = 0, workloads = 1;
  auto operator<=>(const EstimatorQuestion&) const = default;
};

struct SiteEstimatorOptions {
  net::AllowList allowed;                      // hosts that are asked directly
  std::string cluster_set_domain;              // of ServiceExports, such as clusterset.local
  Duration timeout = std::chrono::seconds{5};  // of one question, all its steps together
  Duration keep = std::chrono::seconds{10};    // an answer
  Duration keep_failure = std::chrono::seconds{3};
};

// Single-threaded, on the controller's strand.
class SiteEstimators {
 public:
  SiteEstimators(boost::asio::any_io_executor executor, SiteClusters& clusters,
                 SiteEstimatorOptions options, const Clock& clock);
  ~SiteEstimators();

  // Never fails: what went wrong stands in the answer's `source`, as a sentence.
  kube::Task<placement::sites::EnergyAnswer> ask(std::shared_ptr<const api::Site> site,
                                                 EstimatorQuestion question);

 private:
  struct Kept {
    MonotonicPoint until;
    placement::sites::EnergyAnswer answer;
  };
  using Key = std::tuple<std::string, std::int64_t, EstimatorQuestion>;  // site, generation

  kube::Task<Result<net::Response>> send(std::shared_ptr<const api::Site> site, std::string body);
  kube::Task<Result<net::Response>> post(std::string url, net::Request request);
  kube::Task<Result<std::string>> url_of(std::shared_ptr<const api::Site> site);

  boost::asio::any_io_executor executor_;
  SiteClusters& clusters_;
  SiteEstimatorOptions options_;
  const Clock& clock_;
  std::map<Key, Kept> kept_;
  std::map<std::string, std::shared_ptr<net::Client>> clients_;  // by origin
};

// The body of a question, and the answer to it: the last of the cumulative increases, in whole
// milliwatts. Pure. Errors: protocol (not such an answer, NaN, less than nothing, another length).
std::string estimator_body(const EstimatorQuestion& question);
struct EstimatorAnswer {
  bool fits = true;
  std::int64_t increase_milliwatts = 0;
};
Result<EstimatorAnswer> parse_estimator_answer(std::string_view json,
                                               const EstimatorQuestion& question);

// The host name that external-dns publishes for a Service. Errors: not_found (no such annotation),
// parse. Pure.
Result<std::string> external_dns_name(std::string_view service_json);
// Is the ServiceExport good? Errors: conflict with its own words, parse. Pure.
Result<void> check_service_export(std::string_view json);

}  // namespace kwatt::reconcilers
