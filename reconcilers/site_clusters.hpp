#pragma once
// The API of a site's cluster: the controller's own, a member's by a kubeconfig in a Secret, or a
// member's through Karmada's aggregated proxy.
#include <map>
#include <memory>
#include <string>

#include "api/site.hpp"
#include "base/clock.hpp"
#include "kube/client.hpp"
#include "kube/fetch.hpp"

namespace kwatt::reconcilers {

// Requests go out with `prefix` before their path. Copies share the connection.
struct ClusterApi {
  kube::Send send;
  std::string prefix;
};

// Single-threaded, on the controller's strand.
class SiteClusters {
 public:
  // Secrets are read from `secret_namespace` (the controller's own) and from nowhere else. `own`
  // reaches the controller's API server.
  SiteClusters(boost::asio::any_io_executor executor, kube::Client& client, kube::Send own,
               std::string secret_namespace, const Clock& clock);

  // Errors: not_found (a Secret or its key, named in the sentence), parse, forbidden (a kubeconfig
  // that reads files of the controller's machine), and those of the API server.
  kube::Task<Result<ClusterApi>> of(std::shared_ptr<const api::Site> site);

  // One key of a Secret in the controller's namespace. Errors: as of().
  kube::Task<Result<std::string>> secret(std::string name, std::string key);

 private:
  struct Entry {
    std::string kubeconfig;
    MonotonicPoint read_at;
    ClusterApi api;
  };
  boost::asio::any_io_executor executor_;
  kube::Client& client_;
  kube::Send own_;
  std::string secret_namespace_;
  const Clock& clock_;
  std::map<std::string, Entry> entries_;  // by name of the Secret
};

// A kubeconfig that is complete in itself. Errors: as kube::parse_kubeconfig(), and forbidden where
// it names a file: whoever writes the Secret does not choose what the controller reads and sends.
Result<kube::Config> parse_member_kubeconfig(const std::string& yaml);

}  // namespace kwatt::reconcilers
