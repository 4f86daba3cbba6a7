// exclude, include: the annotation kwatt.dev/exclude of a Node.
#include <fmt/format.h>

#include "cli/change.hpp"
#include "cli/read.hpp"
#include "planner/plan.hpp"

namespace kwatt::cli {
namespace {

struct Options {
  std::string node;
  bool dry_run = false;
};

kube::Task<Result<int>> mark(Session& session, Options options, bool exclude) {
  auto name = node_name(options.node);
  if (!name) co_return name.error();
  Change change;
  change.resource = kube::resources::nodes();
  change.name = *name;
  change.body = annotation_patch(planner::names::kExclude,
                                 exclude ? api::JsonValue("true") : api::JsonValue::null());
  change.sentence = exclude ? fmt::format("node {} is not touched any more", *name)
                            : fmt::format("node {} takes part again", *name);
  change.dry_run = options.dry_run;
  co_return co_await apply(session, std::move(change));
}

void add_one(CLI::App& app, Chosen& chosen, const std::string& name, const std::string& what,
             bool exclude) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, name, what, "  kubectl kwatt " + name + " node-7\n");
  verb->add_option("NODE", options->node, "The node")->required();
  add_dry_run(*verb, options->dry_run);
  verb->callback([&chosen, options, exclude] {
    chosen.work = [options, exclude](Session& session) { return mark(session, *options, exclude); };
  });
}

}  // namespace

void add_exclude_verbs(CLI::App& app, Chosen& chosen) {
  add_one(app, chosen, "exclude", "Never touch a node: leave it exactly as it is", true);
  add_one(app, chosen, "include", "Undo exclude", false);
}

}  // namespace kwatt::cli
