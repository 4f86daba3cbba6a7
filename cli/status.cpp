// status: policies, machines by state, watts and savings.
#include "cli/output.hpp"
#include "cli/overview.hpp"
#include "cli/read.hpp"

namespace kwatt::cli {
namespace {

struct Options {
  Format format = Format::table;
  bool nodes = false;
};

kube::Task<Result<int>> status(Session& session, Options options) {
  auto policies = co_await read_all<api::EnergyPolicy>(session, kube::resources::energy_policies());
  if (!policies) co_return policies.error();
  auto machines = co_await read_all<api::NodePower>(session, kube::resources::node_powers());
  if (!machines) co_return machines.error();
  const Overview overview = overview_of(*policies, *machines);
  session.out << shown(options.format, table_of(overview, options.nodes, session.clock.now()),
                       json_of(overview));
  co_return kDone;
}

}  // namespace

void add_status(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, "status", "Show policies, machines by state, watts and savings",
                            "  kubectl kwatt status\n"
                            "  kubectl kwatt get --nodes\n"
                            "  kubectl kwatt status -o json\n");
  verb->alias("get");
  verb->add_flag("--nodes", options->nodes, "With a line for each node");
  add_format(*verb, options->format);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return status(session, *options); };
  });
}

}  // namespace kwatt::cli
