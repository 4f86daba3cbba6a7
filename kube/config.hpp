#pragma once
// Where the API server is and with what we prove who we are: kubeconfig files, or the files that
// every pod has. Values only; kube/credentials.hpp reads the files they name, again and again.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/http.hpp"

namespace kwatt::kube {

// PEM (or token) text given inline or as a file that may be rotated. Inline text wins.
struct TextOrFile {
  std::string text;
  std::string file;
  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const TextOrFile&) const = default;
};

struct Config {
  net::Origin server;
  std::string path_prefix;  // "" or "/k8s/clusters/a": goes before every path
  TextOrFile certificate_authority;
  TextOrFile client_certificate, client_key;
  std::string tls_server_name;  // overrides the server's host for verification
  std::string token;            // used while token_file cannot be read, or if there is none
  std::string token_file;
  std::string namespace_name = "default";  // of the context, or of our own pod
  std::string context;                     // for messages; "" in a cluster
};

// One kubeconfig as text; `path` is only used to resolve the relative file names in it.
struct KubeconfigText {
  std::string path;
  std::string yaml;
};

// Merges as kubectl does: the first file that defines a cluster, user, context or the current
// context wins. `context` "" means current-context.
// Errors: parse (not YAML, or not a kubeconfig), not_found (context, cluster or user), unsupported
// (exec and auth-provider plugins, basic auth, proxy-url, impersonation: the sentence names the
// field), forbidden (insecure-skip-tls-verify, or a token over plain http to another machine).
Result<Config> parse_kubeconfig(const std::vector<KubeconfigText>& files,
                                const std::string& context = {});

// Reads and merges the files. As with kubectl, files that do not exist are skipped as long as one
// is left. Errors: as above, io.
Result<Config> load_kubeconfig(const std::vector<std::string>& paths,
                               const std::string& context = {});

// Looks up one environment variable; nullopt: not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

inline constexpr const char* kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// From KUBERNETES_SERVICE_HOST and _PORT (both needed) and the service account's files.
// Errors: not_found (not in a pod), io (no token, no CA).
Result<Config> in_cluster_config(const Environment& environment,
                                 const std::string& folder = kServiceAccountFolder);

// What the programs use: --kubeconfig, else $KUBECONFIG (several files, separated by ':'), else in
// the cluster, else ~/.kube/config.
struct FindConfig {
  std::string kubeconfig{};  // --kubeconfig, "": not given
  std::string context{};     // --context
  std::string service_account_folder = kServiceAccountFolder;
};
Result<Config> find_config(const FindConfig& options,
                           const Environment& environment = process_environment());

}  // namespace kwatt::kube
