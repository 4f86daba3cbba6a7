// Parsing and merging kubeconfig files.
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "kube/base64.hpp"
#include "kube/config.hpp"
#include "kube/credentials.hpp"

namespace kwatt::kube {
namespace {

// A named entry together with the folder its relative file names start from.
struct Entry {
  YAML::Node node;
  std::string folder;
};

struct Merged {
  std::string current_context;
  std::map<std::string, Entry> clusters, users, contexts;
  std::vector<std::string> paths;  // for messages
};

std::string text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.Scalar() : std::string{};
}

// The first file wins.
void take_entries(const YAML::Node& list, const char* inner, const std::string& folder,
                  std::map<std::string, Entry>& into) {
  if (!list || !list.IsSequence()) return;
  for (const YAML::Node& item : list) {
    if (!item.IsMap()) continue;
    const std::string name = text(item, "name");
    const YAML::Node node = item[inner];
    if (!name.empty() && node && node.IsMap()) into.try_emplace(name, Entry{node, folder});
  }
}

Result<void> take_file(const KubeconfigText& file, Merged& merged) {
  YAML::Node root;
  try {
    root = YAML::Load(file.yaml);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::parse, fmt::format("kubeconfig {} is not YAML", file.path),
                error.what());
  }
  if (root.IsNull()) return {};  // an empty file is a legal kubeconfig
  if (!root.IsMap()) {
    return fail(ErrorCode::parse, fmt::format("kubeconfig {} is not a YAML mapping", file.path));
  }
  const std::string folder = std::filesystem::path(file.path).parent_path().string();
  if (merged.current_context.empty()) merged.current_context = text(root, "current-context");
  take_entries(root["clusters"], "cluster", folder, merged.clusters);
  take_entries(root["users"], "user", folder, merged.users);
  take_entries(root["contexts"], "context", folder, merged.contexts);
  return {};
}

Result<Entry> find(const std::map<std::string, Entry>& entries, const char* what,
                   const std::string& name, const Merged& merged) {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  std::vector<std::string> known;
  known.reserve(entries.size());
  for (const auto& [entry, value] : entries) known.push_back(entry);
  return fail(ErrorCode::not_found,
              fmt::format("no {} \"{}\" in kubeconfig {}; there are: {}", what, name,
                          fmt::join(merged.paths, ":"),
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

std::string resolve(const Entry& entry, const char* key) {
  std::string name = text(entry.node, key);
  if (name.empty() || entry.folder.empty()) return name;
  return (std::filesystem::path(entry.folder) / name).lexically_normal().string();
}

Result<TextOrFile> text_or_file(const Entry& entry, const char* file_key, const char* data_key) {
  TextOrFile value;
  const std::string data = text(entry.node, data_key);
  if (data.empty()) {
    value.file = resolve(entry, file_key);
    return value;
  }
  auto decoded = decode_base64(data);
  if (!decoded || decoded->empty()) {
    return fail(ErrorCode::parse, fmt::format("kubeconfig: {} is not base64", data_key));
  }
  value.text = std::move(*decoded);
  return value;
}

Result<void> read_cluster(const Entry& entry, Config& config) {
  // yaml-cpp reads booleans in all the forms kubectl accepts.
  const YAML::Node insecure = entry.node["insecure-skip-tls-verify"];
  if (insecure && insecure.IsScalar() && insecure.as<bool>(true)) {
    return fail(ErrorCode::forbidden,
                "kubeconfig: insecure-skip-tls-verify is refused, because anybody in between could "
                "read the credentials; give certificate-authority or certificate-authority-data");
  }
  if (!text(entry.node, "proxy-url").empty()) {
    return fail(ErrorCode::unsupported, "kubeconfig: proxy-url is not supported");
  }
  auto url = net::parse_url(text(entry.node, "server"));
  if (!url) return url.error().with_context("kubeconfig: server");
  config.server = url->origin;
  config.path_prefix = url->path;
  while (!config.path_prefix.empty() && config.path_prefix.back() == '/') {
    config.path_prefix.pop_back();
  }
  config.tls_server_name = text(entry.node, "tls-server-name");
  auto ca = text_or_file(entry, "certificate-authority", "certificate-authority-data");
  if (!ca) return ca.error();
  config.certificate_authority = std::move(*ca);
  return {};
}

Result<void> read_user(const Entry& entry, Config& config) {
  static constexpr std::pair<const char*, const char*> kUnsupported[] = {
      {"exec",
       "credential plugins (exec) are not supported yet; use a token, a tokenFile or a "
       "client certificate"},
      {"auth-provider",
       "auth-provider was removed from Kubernetes; use a token or a client "
       "certificate"},
      {"username",
       "user name and password were removed from Kubernetes; use a token or a client "
       "certificate"},
      {"as", "impersonation (as) is not supported"},
  };
  for (const auto& [key, sentence] : kUnsupported) {
    if (entry.node[key]) {
      return fail(ErrorCode::unsupported, fmt::format("kubeconfig: {}", sentence));
    }
  }
  auto certificate = text_or_file(entry, "client-certificate", "client-certificate-data");
  if (!certificate) return certificate.error();
  auto key = text_or_file(entry, "client-key", "client-key-data");
  if (!key) return key.error();
  config.client_certificate = std::move(*certificate);
  config.client_key = std::move(*key);
  if (config.client_certificate.empty() != config.client_key.empty()) {
    return fail(ErrorCode::invalid_argument,
                "kubeconfig: client-certificate and client-key go together; one is missing");
  }
  config.token = text(entry.node, "token");
  config.token_file = resolve(entry, "tokenFile");
  return {};
}

bool loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Result<Config> parse_kubeconfig(const std::vector<KubeconfigText>& files,
                                const std::string& context) {
  Merged merged;
  for (const KubeconfigText& file : files) {
    merged.paths.push_back(file.path);
    if (auto taken = take_file(file, merged); !taken) return taken.error();
  }
  Config config;
  config.context = context.empty() ? merged.current_context : context;
  if (config.context.empty()) {
    return fail(ErrorCode::not_found, fmt::format("kubeconfig {} names no current-context",
                                                  fmt::join(merged.paths, ":")));
  }
  auto chosen = find(merged.contexts, "context", config.context, merged);
  if (!chosen) return chosen.error();
  auto cluster = find(merged.clusters, "cluster", text(chosen->node, "cluster"), merged);
  if (!cluster) return cluster.error();
  if (const auto name = text(chosen->node, "namespace"); !name.empty()) {
    config.namespace_name = name;
  }
  if (auto read = read_cluster(*cluster, config); !read) return read.error();
  if (const auto name = text(chosen->node, "user"); !name.empty()) {
    auto user = find(merged.users, "user", name, merged);
    if (!user) return user.error();
    if (auto read = read_user(*user, config); !read) return read.error();
  }
  const bool has_token = !config.token.empty() || !config.token_file.empty();
  if (!config.server.tls && has_token && !loopback(config.server.host)) {
    return fail(ErrorCode::forbidden,
                "kubeconfig: a token is not sent over plain http to another machine; use https");
  }
  return config;
}

Result<Config> load_kubeconfig(const std::vector<std::string>& paths, const std::string& context) {
  std::vector<KubeconfigText> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (paths.size() > 1 && !std::filesystem::exists(path, ignored)) continue;
    auto yaml = read_file(path);
    if (!yaml) return yaml.error().with_context("kubeconfig");
    files.push_back({path, std::move(*yaml)});
  }
  if (files.empty()) {
    return fail(ErrorCode::io,
                fmt::format("none of the kubeconfig files {} exists", fmt::join(paths, ":")));
  }
  return parse_kubeconfig(files, context);
}

}  // namespace kwatt::kube
