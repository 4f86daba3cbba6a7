#include "agent/options.hpp"

#include <iostream>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "net/http.hpp"

namespace kwatt::agent {
namespace {

constexpr const char* kDescription =
    "Applies what the annotations of this machine's Node ask for (kwatt.dev/governor,\n"
    "/max-frequency-mhz, /epp, /power-cap-watts, /max-uncore-mhz), reports into NodePower\n"
    "status.report, pushes power and utilization samples to the controller, and puts the\n"
    "original settings back when it is stopped, when an annotation goes, and when the controller\n"
    "gives no sign of life.";

// A duration as Go writes it, not below `least`.
void add_duration(CLI::App& app, const std::string& name, Duration& target, Duration least,
                  const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&target, least, name](const std::string& text) {
           const auto duration = parse_go_duration(text);
           if (!duration || *duration < least) {
             throw CLI::ValidationError(
                 name, fmt::format("\"{}\" is not a duration such as 10m or 1h30m of at least {}",
                                   text, format_go_duration(least)));
           }
           target = *duration;
         },
         help)
      ->type_name("DURATION")
      ->default_str(format_go_duration(target));
}

std::string check_url(const std::string& text) {
  if (text.empty()) return {};
  const auto url = net::parse_url(text);
  return url ? std::string{} : url.error().text();
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kDescription, "kwatt-agent");
  app.set_version_flag("--version", std::string("kwatt-agent ") + KWATT_VERSION);
  app.add_option("--node-name", options.node_name, "The Node that is this machine")
      ->envname("NODE_NAME")
      ->required();
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Kubeconfig file; without it $KUBECONFIG, the service account of the pod, or "
                 "~/.kube/config");
  app.add_option("--sysfs-root", options.sysfs_root, "Where the host's /sys is")
      ->capture_default_str();
  app.add_option("--proc-root", options.proc_root, "Where the host's /proc is")
      ->capture_default_str();
  app.add_option("--controller-url", options.controller_url,
                 "Where samples are pushed, e.g. https://kwatt-controller.kwatt-system.svc:8443; "
                 "without it nothing is pushed and only the Lease shows that the controller lives")
      ->check(check_url);
  app.add_option("--controller-ca-file", options.controller_ca_file,
                 "CA certificates (PEM) that the controller's certificate must chain to; read "
                 "again when it changes");
  app.add_option("--controller-token-file", options.controller_token_file,
                 "Bearer token for the push (audience kwatt), read again for every push");
  add_duration(app, "--restore-after", options.restore_after, Duration{0},
               "Without a sign of life of the controller for so long, the original settings come "
               "back; 0s: never");
  add_duration(app, "--sample-interval", options.sample_interval, Duration{100},
               "How often power and utilization are measured");
  add_duration(app, "--push-interval", options.push_interval, Duration{500},
               "How often samples are pushed");
  app.add_option("--lease-namespace", options.lease_namespace,
                 "Namespace of the controller's Lease, read while pushes fail")
      ->capture_default_str();
  app.add_option("--lease-name", options.lease_name, "Name of that Lease")->capture_default_str();
  app.add_option_function<std::string>(
         "--power-off-command",
         [&](const std::string& text) {
           std::istringstream words(text);
           options.power_off_command.clear();
           for (std::string word; words >> word;) options.power_off_command.push_back(word);
         },
         "Program and arguments, separated by blanks, that switch this machine off when the "
         "controller asks for it (only where its BMC address is wol:MAC); without it the machine "
         "is never switched off that way")
      ->check([](const std::string& text) {
        const std::string program = text.substr(0, text.find(' '));
        if (program.starts_with('/') && ::access(program.c_str(), X_OK) == 0) return std::string{};
        return fmt::format("\"{}\" is not the whole path of a program that can be run", program);
      });
  app.add_option("--health-address", options.health_address,
                 "Serve /healthz, /metrics and /forward-metrics (push now) on HOST:PORT");
  app.add_option_function<std::string>(
         "--log-format",
         [&](const std::string& word) { options.log_format = *log::parse_format(word); },
         "json or logfmt")
      ->check(CLI::IsMember({"json", "logfmt"}))
      ->default_str("json");
  app.add_option_function<std::string>(
         "--log-level",
         [&](const std::string& word) { options.log_level = *log::parse_level(word); },
         "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->default_str("info");
  app.add_subcommand("restore",
                     "Give back the machine's original settings as NodePower knows them, at once, "
                     "caps of a budget too, and end; for uninstalling, when no agent runs any more")
      ->fallthrough()
      ->callback([&] { options.restore = true; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error) == 0 ? 0 : 2};
  }
  return {std::move(options), 0};
}

}  // namespace kwatt::agent
