#pragma once
// The command line of kwatt-controller.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/time.hpp"
#include "hardware/allow_list.hpp"
#include "net/allow_list.hpp"

namespace kwatt::controller {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// Power of nodes from a Prometheus server. Off without a url.
struct PrometheusOptions {
  std::string url, token_file, ca_file;
  std::vector<std::string> exporters;  // words of telemetry::known_exporters()
  std::string query;                   // PromQL of the operator's own
  std::string pressure_query;          // PromQL of the static pressure difference, pascals
  std::vector<std::string> labels{"node", "node_name", "instance"};
  Duration interval = std::chrono::seconds{15};
};

// The scheduler extender. Off without an address.
struct ExtenderOptions {
  std::optional<Address> address;
  bool tls = false;            // with the certificate of the ingest server
  std::string client_ca_file;  // callers need a certificate of it; "": nobody is asked for one
  bool bind = false;           // serve /bind
};

// Sites (docs/reference/site.md).
struct SiteOptions {
  net::AllowList allowed;                    // hosts of estimators; empty: none is asked directly
  std::map<std::string, std::string> hooks;  // /PATH or URL of createHook, by NAME
  bool metrics = false;                      // ask Prometheus what Site objects want to know
  Duration interval = std::chrono::seconds{15};
  std::string cluster_set_domain = "clusterset.local";
};

// The job queue (docs/reference/job-queue.md).
struct QueueOptions {
  std::string carbon_sources_file;  // "": no carbon intensity is known
  Duration carbon_interval = std::chrono::minutes{5};
  std::string schedule_log;  // "": none is written
};

struct Options {
  std::string kubeconfig, context;  // "": found as kubectl does, or in the cluster
  std::string namespace_name;       // of our Lease, Secrets and events; "": the pod's own
  std::string node_name;            // the node we run on; never switched off
  std::string agent_service_account = "kwatt-agent";  // NAME in our namespace, or NAMESPACE/NAME
  Address health{"0.0.0.0", 8080};
  Address ingest{"0.0.0.0", 8443};
  std::optional<Address> estimator;         // plain HTTP; nullopt: not served
  std::string estimator_api_key_file;       // "": no key is asked for
  std::string tls_cert_file, tls_key_file;  // of the ingest server; both or none (then it is off)
  std::string lease_name = "kwatt-controller";
  Duration lease_duration = std::chrono::seconds{15};
  Duration renew_deadline = std::chrono::seconds{10};
  Duration retry_period = std::chrono::seconds{2};
  hardware::AllowList bmc_allow;  // empty: no BMC is connected to
  Duration bmc_poll_interval = std::chrono::seconds{30};
  net::AllowList endpoint_allow;  // empty: no predictor or sensor that an object names is asked
  Duration prediction_interval = std::chrono::seconds{30};
  Duration prediction_timeout = std::chrono::seconds{5};
  int machine_workers = 16;
  double client_qps = 100;
  int client_burst = 200;
  Duration telemetry_resolution = std::chrono::seconds{5};
  std::string history_file;  // "": no history is kept
  std::int64_t history_max_bytes = std::int64_t{256} << 20;
  std::string history_csv_dir;                      // "": no hourly files
  std::int64_t carbon_grams_per_kwh = 0;            // of the supply; 0: not known
  std::map<std::string, std::string> bmc_commands;  // programs of command:NAME, by NAME
  PrometheusOptions prometheus;
  ExtenderOptions extender;
  SiteOptions sites;
  QueueOptions queue;
  bool metrics_api = false;  // ask metrics.k8s.io for the utilization of nodes
  Duration metrics_api_interval = std::chrono::seconds{15};
  Duration shutdown_grace = std::chrono::seconds{30};
  log::Level log_level = log::Level::info;
  log::Format log_format = log::Format::json;
};

// Parses the command line; prints help, version or what is wrong itself. nullopt: exit with
// `status`.
std::optional<Options> parse_options(int argc, char** argv, int& status);

}  // namespace kwatt::controller
