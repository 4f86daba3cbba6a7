// suspend, resume: spec.suspend of an EnergyPolicy.
#include <fmt/format.h>

#include "cli/change.hpp"
#include "cli/read.hpp"

namespace kwatt::cli {
namespace {

struct Options {
  std::string policy;
  bool dry_run = false;
};

kube::Task<Result<int>> set(Session& session, Options options, bool suspend) {
  auto name = policy_name(options.policy);
  if (!name) co_return name.error();
  api::MergePatch patch;
  patch.set({"spec", "suspend"}, suspend);
  Change change;
  change.resource = kube::resources::energy_policies();
  change.name = *name;
  change.body = patch.text();
  change.sentence =
      suspend ? fmt::format(
                    "policy {} is suspended: everything stays as it is, machines that are "
                    "off among them",
                    *name)
              : fmt::format("policy {} is at work again", *name);
  change.dry_run = options.dry_run;
  co_return co_await apply(session, std::move(change));
}

void add_one(CLI::App& app, Chosen& chosen, const std::string& name, const std::string& what,
             bool suspend) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, name, what, "  kubectl kwatt " + name + " default\n");
  verb->add_option("POLICY", options->policy, "The EnergyPolicy")->required();
  add_dry_run(*verb, options->dry_run);
  verb->callback([&chosen, options, suspend] {
    chosen.work = [options, suspend](Session& session) { return set(session, *options, suspend); };
  });
}

}  // namespace

void add_suspend_verbs(CLI::App& app, Chosen& chosen) {
  add_one(app, chosen, "suspend", "Let a policy start nothing new", true);
  add_one(app, chosen, "resume", "Undo suspend", false);
}

}  // namespace kwatt::cli
