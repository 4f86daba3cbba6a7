#include "kube/config.hpp"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "kube/credentials.hpp"

namespace kwatt::kube {
namespace {

std::vector<std::string> split_paths(const std::string& list) {
  std::vector<std::string> paths;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(':', start), list.size());
    if (end > start) paths.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return paths;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
  };
}

Result<Config> in_cluster_config(const Environment& environment, const std::string& folder) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return fail(ErrorCode::not_found,
                "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
                "both set");
  }
  Config config;
  config.server.host = host;
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), config.server.port);
  if (error != std::errc{} || end != port.data() + port.size() || config.server.port == 0) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("KUBERNETES_SERVICE_PORT \"{}\" is not a port", port));
  }
  config.token_file = folder + "/token";
  config.certificate_authority.file = folder + "/ca.crt";
  for (const std::string& file : {config.token_file, config.certificate_authority.file}) {
    if (auto present = read_file(file); !present) {
      return present.error().with_context("in-cluster configuration");
    }
  }
  // Absent where the projected volume leaves it out: the default counts then.
  if (auto name = read_file(folder + "/namespace"); name && !trimmed(*name).empty()) {
    config.namespace_name = trimmed(*name);
  }
  return config;
}

Result<Config> find_config(const FindConfig& options, const Environment& environment) {
  if (!options.kubeconfig.empty()) return load_kubeconfig({options.kubeconfig}, options.context);
  if (const auto list = environment("KUBECONFIG"); list && !split_paths(*list).empty()) {
    return load_kubeconfig(split_paths(*list), options.context);
  }
  if (environment("KUBERNETES_SERVICE_HOST")) {
    return in_cluster_config(environment, options.service_account_folder);
  }
  if (const auto home = environment("HOME"); home && !home->empty()) {
    return load_kubeconfig({*home + "/.kube/config"}, options.context);
  }
  return fail(ErrorCode::not_found,
              "no API server: give --kubeconfig, set KUBECONFIG, or run in a cluster");
}

}  // namespace kwatt::kube
