#include "cli/program.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/queue.hpp"

namespace kwatt::cli {
namespace {

namespace asio = boost::asio;

constexpr int kInterrupted = 130;  // as a shell says it of SIGINT

}  // namespace

CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& description,
                   const std::string& examples) {
  CLI::App* verb = app.add_subcommand(name, description);
  verb->fallthrough();  // --kubeconfig and --context may follow the verb
  if (!examples.empty()) verb->footer("Examples:\n" + examples);
  return verb;
}

void add_version(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = add_verb(app, "version", "Print the version", "");
  verb->callback([&chosen] {
    chosen.local = [](std::ostream& out) {
      out << "kubectl-kwatt " << KWATT_VERSION << "\n";
      return kDone;
    };
  });
}

Result<Connection> connect(asio::any_io_executor executor, const kube::FindConfig& where,
                           const Clock& clock) {
  auto config = kube::find_config(where);
  if (!config) return config.error();
  Connection connection;
  connection.namespace_name = config->namespace_name;
  kube::ClientOptions options;
  options.user_agent = std::string("kubectl-kwatt/") + KWATT_VERSION;
  connection.fetch = kube::make_fetch(executor, *config, options.user_agent, clock);
  connection.send = kube::make_send(executor, *config, options.user_agent, clock);
  connection.client = kube::make_client(std::move(executor), *config, std::move(options), clock);
  return connection;
}

void declare(CLI::App& app, kube::FindConfig& where, Chosen& chosen) {
  app.description(
      "Shows what kwatt does with the machines of a cluster, and why; holds, wakes and tests "
      "them.\nAlso as \"kubectl kwatt\".");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("kubectl-kwatt ") + KWATT_VERSION);
  app.add_option("--kubeconfig", where.kubeconfig,
                 "Kubeconfig file (default: $KUBECONFIG, the pod's service account, "
                 "~/.kube/config)");
  app.add_option("--context", where.context, "Context of the kubeconfig");
  add_status(app, chosen);
  add_why(app, chosen);
  add_history(app, chosen);
  add_queue(app, chosen);
  add_estimate(app, chosen);
  add_override_verbs(app, chosen);
  add_exclude_verbs(app, chosen);
  add_suspend_verbs(app, chosen);
  add_wake_test(app, chosen);
  add_recommend_site(app, chosen);
  add_carbon(app, chosen);
  add_simulate_verbs(app, chosen);
  add_record(app, chosen);
  add_reasons(app, chosen);
  add_completion(app, chosen);
  add_version(app, chosen);
}

int perform(const Work& work, const kube::FindConfig& where, World& world) {
  asio::io_context context(1);
  auto connection = world.connect(context.get_executor(), where, world.clock);
  if (!connection) {
    world.err << "error: " << connection.error().text() << "\n";
    return kFailed;
  }
  Session session{*connection->client,        world.clock,       world.out,       world.err,
                  connection->namespace_name, connection->fetch, connection->send};
  std::optional<int> status;
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    status = kInterrupted;
    context.stop();
  });
  asio::co_spawn(context, work(session), [&](const std::exception_ptr& thrown, Result<int> result) {
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& what) {
        world.err << "error: " << what.what() << "\n";
      }
      status = kFailed;
    } else if (!result) {
      world.err << "error: " << result.error().text() << "\n";
      status = kFailed;
    } else {
      status = *result;
    }
    context.stop();
  });
  context.run();
  world.out.flush();
  return status.value_or(kFailed);
}

int run(const std::vector<std::string>& arguments, World& world) {
  if (!arguments.empty() && arguments.front() == kCompleteVerb) {
    return complete({arguments.begin() + 1, arguments.end()}, world);
  }
  kube::FindConfig where;
  Chosen chosen;
  CLI::App app("", "kubectl-kwatt");
  declare(app, where, chosen);
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, world.out, world.err) == 0 ? kDone : kUsage;
  }
  if (chosen.local) return chosen.local(world.out);
  if (chosen.offline) {
    const auto status = chosen.offline(world.out, world.clock);
    if (status) return *status;
    world.err << "error: " << status.error().text() << "\n";
    return kFailed;
  }
  if (chosen.tool) return chosen.tool(world.out, world.err);
  return perform(chosen.work, where, world);
}

}  // namespace kwatt::cli
