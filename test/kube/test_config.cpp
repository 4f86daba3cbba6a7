// kubeconfig files and the in-cluster files.
#include <filesystem>
#include <fstream>
#include <map>

#include <doctest/doctest.h>

#include "kube/base64.hpp"
#include "kube/config.hpp"
#include "test/support/folder.hpp"

using namespace kwatt;
using namespace kwatt::kube;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional{found->second};
  };
}

// A kubeconfig with one context "c" whose cluster and user have these lines.
std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]\n"
         "clusters: [{name: k, cluster: {" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

}  // namespace

TEST_CASE("kubeconfig: everything a context names ends up in the Config") {
  const auto config = parse_kubeconfig(
      {{"/etc/kwatt/kube.yaml",
        kubeconfig(
            "server: 'https://[fd00::1]:6443/k8s/clusters/a/', certificate-authority: ca.crt, "
            "tls-server-name: api.example",
            "client-certificate-data: Y2VydA==, client-key: ../key.pem, token: abc, tokenFile: "
            "/run/t")}});
  REQUIRE(config.has_value());
  CHECK(config->server.tls);
  CHECK(config->server.host == "fd00::1");
  CHECK(config->server.port == 6443);
  CHECK(config->path_prefix == "/k8s/clusters/a");
  CHECK(config->certificate_authority.file == "/etc/kwatt/ca.crt");
  CHECK(config->tls_server_name == "api.example");
  CHECK(config->client_certificate.text == "cert");
  CHECK(config->client_certificate.file.empty());
  CHECK(config->client_key.file == "/etc/key.pem");
  CHECK(config->token == "abc");
  CHECK(config->token_file == "/run/t");
  CHECK(config->namespace_name == "team");
  CHECK(config->context == "c");
}

TEST_CASE("kubeconfig: data wins over a file, the namespace defaults to default") {
  const auto config = parse_kubeconfig(
      {{"k",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://a', certificate-authority: x, "
        "certificate-authority-data: 'Y2E='}}]\n"}});
  REQUIRE(config.has_value());
  CHECK(config->certificate_authority == TextOrFile{"ca", ""});
  CHECK(config->namespace_name == "default");
  CHECK(config->server.port == 443);
}

TEST_CASE("kubeconfig: of several files the first that defines something wins") {
  const std::string first =
      "current-context: b\nclusters: [{name: k, cluster: {server: 'https://first'}}]\n";
  const std::string second =
      "current-context: a\n"
      "contexts: [{name: a, context: {cluster: k}}, {name: b, context: {cluster: k}}]\n"
      "clusters: [{name: k, cluster: {server: 'https://second'}}]\n";
  const auto config = parse_kubeconfig({{"one", first}, {"empty", ""}, {"two", second}});
  REQUIRE(config.has_value());
  CHECK(config->context == "b");
  CHECK(config->server.host == "first");
  const auto chosen = parse_kubeconfig({{"one", first}, {"two", second}}, "a");
  REQUIRE(chosen.has_value());
  CHECK(chosen->context == "a");
}

TEST_CASE("kubeconfig: what is refused, and how it is said") {
  struct Case {
    const char* name;
    std::string yaml;
    ErrorCode code;
    const char* says;
  };
  const std::string server = "server: 'https://a'";
  const std::vector<Case> cases = {
      {"not YAML", "a: [", ErrorCode::parse, "is not YAML"},
      {"not a mapping", "- a", ErrorCode::parse, "not a YAML mapping"},
      {"no current context", "clusters: []", ErrorCode::not_found, "names no current-context"},
      {"unknown context", "current-context: x", ErrorCode::not_found, "no context \"x\""},
      {"unknown cluster", "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]",
       ErrorCode::not_found, "no cluster \"k\""},
      {"no server", kubeconfig("x: y", "token: t"), ErrorCode::parse, "server"},
      {"TLS verification off", kubeconfig(server + ", insecure-skip-tls-verify: true", "token: t"),
       ErrorCode::forbidden, "insecure-skip-tls-verify is refused"},
      {"proxy", kubeconfig(server + ", proxy-url: 'http://p'", "token: t"), ErrorCode::unsupported,
       "proxy-url"},
      {"exec plugin", kubeconfig(server, "exec: {command: aws}"), ErrorCode::unsupported,
       "credential plugins (exec) are not supported"},
      {"auth provider", kubeconfig(server, "auth-provider: {name: gcp}"), ErrorCode::unsupported,
       "auth-provider"},
      {"password", kubeconfig(server, "username: a, password: b"), ErrorCode::unsupported,
       "password"},
      {"impersonation", kubeconfig(server, "token: t, as: root"), ErrorCode::unsupported,
       "impersonation"},
      {"bad base64", kubeconfig(server + ", certificate-authority-data: '%%'", "token: t"),
       ErrorCode::parse, "certificate-authority-data is not base64"},
      {"certificate without key", kubeconfig(server, "client-certificate: a"),
       ErrorCode::invalid_argument, "go together"},
      {"token in the clear", kubeconfig("server: 'http://10.0.0.1'", "token: t"),
       ErrorCode::forbidden, "plain http"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto config = parse_kubeconfig({{"file", c.yaml}});
    REQUIRE(config.has_error());
    CHECK(config.error().code == c.code);
    CHECK_MESSAGE(config.error().message.find(c.says) != std::string::npos, config.error().message);
    CHECK(config.error().text().find("'t'") == std::string::npos);
  }
}

TEST_CASE("kubeconfig: plain http on loopback may carry a token, insecure false is fine") {
  CHECK(parse_kubeconfig({{"f", kubeconfig("server: 'http://127.0.0.1:8001'", "token: t")}})
            .has_value());
  CHECK(parse_kubeconfig(
            {{"f", kubeconfig("server: 'https://a', insecure-skip-tls-verify: false", "token: t")}})
            .has_value());
}

TEST_CASE("kubeconfig: of several files missing ones are skipped, one alone must exist") {
  const test::Folder folder;
  folder.write("k", kubeconfig("server: 'https://a'", "token: t"));
  CHECK(load_kubeconfig({folder.path("gone"), folder.path("k")}).has_value());
  CHECK(load_kubeconfig({folder.path("gone")}).error().code == ErrorCode::io);
  CHECK(load_kubeconfig({folder.path("gone"), folder.path("away")}).error().code == ErrorCode::io);
}

TEST_CASE("in cluster: host and port from the environment, token and CA from the files") {
  const test::Folder folder;
  folder.write("token", "abc\n");
  folder.write("ca.crt", "pem");
  folder.write("namespace", " kwatt-system\n");
  const auto config = in_cluster_config(
      environment({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}),
      folder.path());
  REQUIRE(config.has_value());
  CHECK(config->server.tls);
  CHECK(config->server.authority().starts_with("[fd00::1]"));
  CHECK(config->token_file == folder.path("token"));
  CHECK(config->certificate_authority.file == folder.path("ca.crt"));
  CHECK(config->namespace_name == "kwatt-system");
}

TEST_CASE("in cluster: what is missing is an error") {
  struct Case {
    const char* name;
    std::map<std::string, std::string> variables;
    std::vector<std::string> files;
    ErrorCode code;
  };
  const std::map<std::string, std::string> both = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                                   {"KUBERNETES_SERVICE_PORT", "443"}};
  const std::vector<Case> cases = {
      {"no host", {{"KUBERNETES_SERVICE_PORT", "443"}}, {"token", "ca.crt"}, ErrorCode::not_found},
      {"no port", {{"KUBERNETES_SERVICE_HOST", "h"}}, {"token", "ca.crt"}, ErrorCode::not_found},
      {"bad port",
       {{"KUBERNETES_SERVICE_HOST", "h"}, {"KUBERNETES_SERVICE_PORT", "x"}},
       {"token", "ca.crt"},
       ErrorCode::invalid_argument},
      {"no token", both, {"ca.crt"}, ErrorCode::io},
      {"no CA", both, {"token"}, ErrorCode::io},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const test::Folder folder;
    for (const auto& file : c.files) folder.write(file, "x");
    const auto config = in_cluster_config(environment(c.variables), folder.path());
    REQUIRE(config.has_error());
    CHECK(config.error().code == c.code);
  }
}

TEST_CASE("find: --kubeconfig, then KUBECONFIG, then the cluster, then the home folder") {
  const test::Folder folder;
  const auto named = [](const std::string& host) {
    return kubeconfig("server: 'https://" + host + "'", "token: t");
  };
  folder.write("flag", named("flag"));
  folder.write("variable", named("variable"));
  folder.write("token", "t");
  folder.write("ca.crt", "c");
  std::filesystem::create_directory(folder.path(".kube"));
  folder.write(".kube/config", named("home"));
  std::map<std::string, std::string> all = {{"KUBECONFIG", folder.path("variable") + ":/nowhere"},
                                            {"KUBERNETES_SERVICE_HOST", "cluster"},
                                            {"KUBERNETES_SERVICE_PORT", "1"},
                                            {"HOME", folder.path()}};
  FindConfig options{.kubeconfig = folder.path("flag"), .service_account_folder = folder.path()};
  const auto host = [&] {
    const auto config = find_config(options, environment(all));
    return config ? config->server.host : config.error().message;
  };
  CHECK(host() == "flag");
  options.kubeconfig.clear();
  CHECK(host() == "variable");
  all.erase("KUBECONFIG");
  CHECK(host() == "cluster");
  all.erase("KUBERNETES_SERVICE_HOST");
  CHECK(host() == "home");
  all.erase("HOME");
  CHECK(find_config(options, environment(all)).error().code == ErrorCode::not_found);
}

TEST_CASE("base64: what is and what is not") {
  const std::vector<std::pair<const char*, std::optional<std::string>>> cases = {
      {"", ""},
      {"Zg==", "f"},
      {"Zm8=", "fo"},
      {"Zm9v", "foo"},
      {"Zm9v\nYmE=", "fooba"},
      {"Zg", std::nullopt},
      {"Zg=", std::nullopt},
      {"Z===", std::nullopt},
      {"Zg==Zg==", std::nullopt},
      {"Zm9v=", std::nullopt},
      {"Z-9v", std::nullopt},
      {"====", std::nullopt},
  };
  for (const auto& [text, want] : cases) {
    CAPTURE(text);
    CHECK(decode_base64(text) == want);
  }
}
