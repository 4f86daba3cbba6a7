#include "controller/options.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/quantity.hpp"
#include "net/http.hpp"
#include "telemetry/history_file.hpp"
#include "telemetry/prometheus_query.hpp"

namespace kwatt::controller {
namespace {

// Turns the text of an option into a value; the empty string from `parse` means it was good.
template <class T, class Parse>
CLI::Option* parsed(CLI::App& app, const std::string& name, T& target, const std::string& help,
                    const std::string& shown_default, Parse parse) {
  return app
      .add_option_function<std::string>(
          name,
          [&target, name, parse](const std::string& text) {
            const auto value = parse(text);
            if (!value) throw CLI::ValidationError(name, fmt::format("'{}' is not valid", text));
            target = *value;
          },
          help)
      ->default_str(shown_default);
}

std::optional<Duration> positive_duration(const std::string& text) {
  const auto value = parse_go_duration(text);
  if (!value || *value <= Duration{0}) return std::nullopt;
  return value;
}

// "0.0.0.0:8080", ":8080", "[::1]:8080"
std::optional<Address> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.size() >= 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host.empty()) address.host = "0.0.0.0";
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc{} || last != end || begin == end) return std::nullopt;
  return address;
}

// "pdu=/usr/local/bin/pdu" into the map; what is wrong, or "".
std::string add_command(const std::string& text, std::map<std::string, std::string>& commands) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!plain || !path.starts_with('/')) {
    return fmt::format("'{}' is not NAME=/path/of/program (NAME: letters, digits, -, _ and .)",
                       text);
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return fmt::format("{} is not a program that can be run: {}", path, std::strerror(errno));
  }
  if (!commands.emplace(name, path).second) return fmt::format("{} is given twice", name);
  return "";
}

std::vector<std::string> exporter_words() {
  std::vector<std::string> words;
  for (const telemetry::Source source : telemetry::known_exporters()) {
    words.emplace_back(to_string(source));
  }
  return words;
}

void add_telemetry(CLI::App& app, Options& options) {
  PrometheusOptions& prometheus = options.prometheus;
  app.add_option(
      "--prometheus-url", prometheus.url,
      "root of a Prometheus server that knows the power of nodes; redirects are refused");
  app.add_option("--prometheus-exporter", prometheus.exporters,
                 "whose metrics to ask it for; may be repeated")
      ->check(CLI::IsMember(exporter_words()));
  app.add_option("--prometheus-query", prometheus.query,
                 "PromQL that gives the watts of whole machines, one series for each node");
  app.add_option("--prometheus-pressure-query", prometheus.pressure_query,
                 "PromQL that gives the static pressure difference of machines in pascals, one "
                 "series for each node");
  app.add_option(
         "--prometheus-node-labels", prometheus.labels,
         "labels that name the node (its name, InternalIP, or one of them with a port); the "
         "first that a series has counts")
      ->delimiter(',')
      ->capture_default_str();
  parsed(app, "--prometheus-interval", prometheus.interval, "pause between two queries", "15s",
         positive_duration);
  app.add_option("--prometheus-token-file", prometheus.token_file,
                 "bearer token for Prometheus, read before every query; none is sent without it");
  app.add_option("--prometheus-ca-file", prometheus.ca_file,
                 "authority of its certificate (default: the system's)");
  app.add_flag("--metrics-api", options.metrics_api,
               "take CPU utilization from metrics.k8s.io where no agent pushes");
  parsed(app, "--metrics-api-interval", options.metrics_api_interval, "pause between two lists",
         "15s", positive_duration);
}

void add_estimator(CLI::App& app, Options& options) {
  parsed(
      app, "--estimator-address", options.estimator,
      "address of the power estimates as WAO-Estimator's clients ask for them, plain HTTP, such as "
      ":5656; not served without it",
      "", [](const std::string& text) -> std::optional<std::optional<Address>> {
        const auto address = parse_address(text);
        if (!address) return std::nullopt;
        return std::optional<std::optional<Address>>(std::in_place, address);
      });
  app.add_option(
      "--estimator-api-key-file", options.estimator_api_key_file,
      "file of the keys that callers must send in X-API-KEY, one a line (default: none is "
      "asked for)");
}

void add_predictions(CLI::App& app, Options& options) {
  app.add_option_function<std::vector<std::string>>(
         "--endpoint-allow",
         [&options](const std::vector<std::string>& texts) {
           auto list = net::AllowList::parse(texts, net::AllowList::Bare::both);
           if (!list) throw CLI::ValidationError("--endpoint-allow", list.error().message);
           options.endpoint_allow = std::move(*list);
         },
         "predictors and sensors that nodes and Estimators may name: addresses, CIDRs and host "
         "names, separated by commas; with https:// before it where only TLS is meant (default: "
         "none)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  parsed(app, "--prediction-interval", options.prediction_interval,
         "how often the power of every node with more work is predicted", "30s", positive_duration);
  parsed(app, "--prediction-timeout", options.prediction_timeout,
         "how long a predictor may take for one batch", "5s", positive_duration);
}

void add_extender(CLI::App& app, ExtenderOptions& extender) {
  parsed(app, "--extender-address", extender.address,
         "address of the scheduler extender, usually :8888 (default: it is not served)", "",
         parse_address);
  app.add_flag("--extender-tls", extender.tls,
               "serve the extender over TLS, with the certificate of --tls-cert-file");
  app.add_option("--extender-client-ca-file", extender.client_ca_file,
                 "authority of the certificates that the extender's callers must have");
  app.add_flag("--extender-bind", extender.bind,
               "serve /bind: restore a slow or capped node, then bind; who calls binds with this "
               "controller's rights, so callers must have certificates or be on this machine");
}

// "vms=/usr/local/bin/vms" or "vms=https://vms.example.org/create" into the map; what is wrong.
std::string add_hook(const std::string& text, std::map<std::string, std::string>& hooks) {
  const auto equals = text.find('=');
  const std::string target = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (!target.starts_with("http://") && !target.starts_with("https://")) {
    return add_command(text, hooks);
  }
  if (const auto url = net::parse_url(target); !url) return url.error().message;
  if (equals == 0) return fmt::format("'{}' is not NAME=URL", text);
  if (!hooks.emplace(text.substr(0, equals), target).second) {
    return fmt::format("{} is given twice", text.substr(0, equals));
  }
  return "";
}

void add_sites(CLI::App& app, SiteOptions& sites) {
  app.add_option_function<std::vector<std::string>>(
         "--site-allow",
         [&sites](const std::vector<std::string>& texts) {
           auto list = net::AllowList::parse(texts, net::AllowList::Bare::encrypted);
           if (!list) throw CLI::ValidationError("--site-allow", list.error().message);
           sites.allowed = std::move(*list);
         },
         "estimators of sites that may be asked directly: addresses, CIDRs and host names, "
         "separated by commas; with http:// before it where plain HTTP is meant (default: none)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--site-hook",
         [&sites](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             const std::string wrong = add_hook(text, sites.hooks);
             if (!wrong.empty()) throw CLI::ValidationError("--site-hook", wrong);
           }
         },
         "program or URL that starts machines at sites with createHook: NAME; may be repeated")
      ->type_name("NAME=/PATH|URL")
      ->expected(1)
      ->take_all();
  app.add_flag("--site-metrics", sites.metrics,
               "ask --prometheus-url what Site objects want to know (spec.metrics)");
  parsed(app, "--site-metrics-interval", sites.interval, "pause between two readings of a site",
         "15s", positive_duration);
  app.add_option("--cluster-set-domain", sites.cluster_set_domain,
                 "domain of Services that other clusters export (ServiceExport)")
      ->capture_default_str();
}

void add_queue(CLI::App& app, QueueOptions& queue) {
  app.add_option(
      "--carbon-sources", queue.carbon_sources_file,
      "JSON file of carbon intensity sources, which policies name in spec.carbon.source; "
      "those that are asked over HTTP must be in --endpoint-allow");
  parsed(app, "--carbon-interval", queue.carbon_interval, "pause between two readings of a zone",
         "5m", positive_duration);
  app.add_option("--schedule-log", queue.schedule_log,
                 "CSV file to which every job that the queue starts is appended");
}

bool loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Throws what CLI11 prints.
void check_prometheus(const PrometheusOptions& prometheus, bool for_sites) {
  const bool asks = !prometheus.exporters.empty() || !prometheus.query.empty() ||
                    !prometheus.pressure_query.empty();
  if (prometheus.url.empty()) {
    if (asks || for_sites || !prometheus.token_file.empty()) {
      throw CLI::ValidationError("--prometheus-url", "is missing: the other options need it");
    }
    return;
  }
  if (!asks && !for_sites) {
    throw CLI::ValidationError(
        "--prometheus-url",
        fmt::format("says where, but not what: give --prometheus-exporter ({}), "
                    "--prometheus-query, --prometheus-pressure-query or --site-metrics",
                    fmt::join(exporter_words(), ", ")));
  }
  const auto url = net::parse_url(prometheus.url);
  if (!url) throw CLI::ValidationError("--prometheus-url", url.error().message);
  if (url->path.find('?') != std::string::npos) {
    throw CLI::ValidationError("--prometheus-url", "must not have a ?query");
  }
  if (!url->origin.tls && !prometheus.token_file.empty() && !loopback(url->origin.host)) {
    throw CLI::ValidationError("--prometheus-token-file",
                               "is not sent over http to another machine, where anybody could read "
                               "it; use https");
  }
  if (prometheus.labels.empty()) {
    throw CLI::ValidationError("--prometheus-node-labels", "must name a label");
  }
}

// Throws what CLI11 prints.
void check_extender(const Options& options) {
  const ExtenderOptions& extender = options.extender;
  const bool more = extender.tls || extender.bind || !extender.client_ca_file.empty();
  if (!extender.address) {
    if (more) {
      throw CLI::ValidationError("--extender-address", "is missing: the other options need it");
    }
    return;
  }
  if (extender.tls && options.tls_cert_file.empty()) {
    throw CLI::ValidationError("--extender-tls", "needs --tls-cert-file");
  }
  if (!extender.client_ca_file.empty() && !extender.tls) {
    throw CLI::ValidationError("--extender-client-ca-file", "needs --extender-tls");
  }
  if (extender.bind && extender.client_ca_file.empty() && !loopback(extender.address->host)) {
    throw CLI::ValidationError("--extender-bind",
                               "would let anyone who reaches the address bind pods; give "
                               "--extender-client-ca-file, or an address on loopback");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& status) {
  Options options;
  CLI::App app{
      "kwatt-controller decides for each node and pod what saves energy, and carries it out.\n"
      "It acts only on nodes that an EnergyPolicy with mode Enforce selects.",
      "kwatt-controller"};
  app.set_version_flag("--version", std::string("kwatt-controller ") + KWATT_VERSION);
  app.add_option(
      "--kubeconfig", options.kubeconfig,
      "kubeconfig file (default: $KUBECONFIG, the pod's service account, ~/.kube/config)");
  app.add_option("--context", options.context, "context of the kubeconfig");
  app.add_option("--namespace", options.namespace_name,
                 "namespace of the Lease and of the BMC Secrets (default: the pod's own)")
      ->envname("POD_NAMESPACE");
  app.add_option("--node-name", options.node_name,
                 "node this controller runs on; it is never switched off")
      ->envname("NODE_NAME");
  app.add_option("--agent-service-account", options.agent_service_account,
                 "ServiceAccount whose tokens may push samples: NAME in --namespace, or "
                 "NAMESPACE/NAME")
      ->capture_default_str();
  parsed(app, "--health-address", options.health, "address of /metrics, /healthz, /livez, /readyz",
         "0.0.0.0:8080", parse_address);
  parsed(app, "--ingest-address", options.ingest, "address of /metrics-ingest (TLS)",
         "0.0.0.0:8443", parse_address);
  app.add_option("--tls-cert-file", options.tls_cert_file,
                 "certificate chain of the ingest server; without it agents cannot push samples");
  app.add_option("--tls-private-key-file", options.tls_key_file, "its private key");
  app.add_option("--lease-name", options.lease_name, "name of the leader election Lease")
      ->capture_default_str();
  parsed(app, "--lease-duration", options.lease_duration, "how long a lease lasts unrenewed", "15s",
         positive_duration);
  parsed(app, "--lease-renew-deadline", options.renew_deadline,
         "the leader stops when it could not renew for so long", "10s", positive_duration);
  parsed(app, "--lease-retry-period", options.retry_period, "pause between attempts to renew", "2s",
         positive_duration);
  app.add_option_function<std::vector<std::string>>(
         "--bmc-allow",
         [&options](const std::vector<std::string>& texts) {
           auto list = hardware::AllowList::parse(texts);
           if (!list) throw CLI::ValidationError("--bmc-allow", list.error().message);
           options.bmc_allow = std::move(*list);
         },
         "machines' controllers (BMCs) that may be connected to: addresses, CIDRs and host names, "
         "separated by commas; with http:// before it where plain HTTP is meant (default: none)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  parsed(app, "--bmc-poll-interval", options.bmc_poll_interval,
         "how often a BMC is asked for power and limit", "30s", positive_duration);
  app.add_option("--machine-workers", options.machine_workers,
                 "machines worked on at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--client-qps", options.client_qps, "API requests per second")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--client-burst", options.client_burst, "API requests in a burst")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option_function<std::vector<std::string>>(
         "--bmc-command",
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             const std::string wrong = add_command(text, options.bmc_commands);
             if (!wrong.empty()) throw CLI::ValidationError("--bmc-command", wrong);
           }
         },
         "program that switches the machines with the BMC address command:NAME; may be repeated")
      ->type_name("NAME=/PATH")
      ->expected(1)
      ->take_all();
  parsed(app, "--telemetry-resolution", options.telemetry_resolution,
         "samples within this span are averaged", "5s", positive_duration);
  app.add_option("--history-file", options.history_file,
                 "SQLite file of samples, decisions and energy (default: none is kept)");
  parsed(app, "--history-max-bytes", options.history_max_bytes,
         "its size at most, 1Mi or more; the oldest rows are removed", "256Mi",
         [](const std::string& text) -> std::optional<std::int64_t> {
           const auto bytes = api::parse_quantity(text);
           return bytes && *bytes >= telemetry::kHistoryMinimumBytes ? bytes : std::nullopt;
         });
  app.add_option("--history-csv-dir", options.history_csv_dir,
                 "folder for metrics_<hour>.csv, written every hour from the history; a week of "
                 "them is kept");
  app.add_option("--carbon-grams-per-kwh", options.carbon_grams_per_kwh,
                 "carbon intensity of the power supply; 0: not known, no CO2 is reported")
      ->check(CLI::Range(0, 5'000))
      ->capture_default_str();
  add_telemetry(app, options);
  add_estimator(app, options);
  add_extender(app, options.extender);
  add_predictions(app, options);
  add_sites(app, options.sites);
  add_queue(app, options.queue);
  parsed(app, "--shutdown-grace", options.shutdown_grace,
         "how long running work may take after SIGTERM", "30s", positive_duration);
  parsed(app, "--log-level", options.log_level, "debug, info, warn or error", "info",
         [](const std::string& text) { return log::parse_level(text); });
  parsed(app, "--log-format", options.log_format, "json or logfmt", "json",
         [](const std::string& text) { return log::parse_format(text); });
  try {
    app.parse(argc, argv);
    if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
      throw CLI::ValidationError("--tls-cert-file", "goes together with --tls-private-key-file");
    }
    if (!options.history_csv_dir.empty() && options.history_file.empty()) {
      throw CLI::ValidationError("--history-csv-dir", "needs --history-file");
    }
    if (!options.estimator_api_key_file.empty() && !options.estimator) {
      throw CLI::ValidationError("--estimator-api-key-file", "needs --estimator-address");
    }
    check_extender(options);
    check_prometheus(options.prometheus, options.sites.metrics);
  } catch (const CLI::ParseError& error) {
    status = app.exit(error);
    return std::nullopt;
  }
  return options;
}

}  // namespace kwatt::controller
