#pragma once
// The command line of kwatt-agent.
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/time.hpp"

namespace kwatt::agent {

struct Options {
  bool restore = false;    // the command `restore` was given: see restore.hpp
  std::string node_name;   // default: $NODE_NAME
  std::string kubeconfig;  // "": in the cluster, or kubectl's defaults
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::string controller_url;  // "": nothing is pushed
  std::string controller_ca_file;
  std::string controller_token_file;
  Duration restore_after = std::chrono::minutes{10};
  Duration sample_interval = std::chrono::seconds{1};
  Duration push_interval = std::chrono::seconds{10};
  std::string lease_namespace = "kwatt-system";
  std::string lease_name = "kwatt-controller";
  std::vector<std::string> power_off_command;  // program and arguments; empty: not offered
  std::string health_address;                  // "host:port"; "": not served
  log::Level log_level = log::Level::info;
  log::Format log_format = log::Format::json;
};

// The options, or the exit code when there is nothing to run: after --help and --version (0), or
// after a mistake, which is explained on stderr.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace kwatt::agent
