// wake, hold, release: the annotation kwatt.dev/override of a Node.
#include <fmt/format.h>

#include "cli/change.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "planner/plan.hpp"

namespace kwatt::cli {
namespace {

struct Options {
  std::string node, until;
  bool dry_run = false;
};

// A duration from now, or a time. Errors: invalid_argument.
Result<TimePoint> until_of(const std::string& text, TimePoint now) {
  if (const auto duration = parse_go_duration(text)) {
    if (*duration > Duration{0}) return now + *duration;
  } else if (const auto time = parse_rfc3339(text)) {
    if (*time > now) return *time;
  } else {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--until {}: neither a duration such as 2h nor a time such as "
                            "2030-12-24T18:00:00Z",
                            text));
  }
  return fail(ErrorCode::invalid_argument, fmt::format("--until {} is in the past", text));
}

kube::Task<Result<int>> hold(Session& session, Options options, bool wake) {
  auto name = node_name(options.node);
  if (!name) co_return name.error();
  std::string value = "on", sentence = fmt::format("node {} is held on", *name);
  if (wake) sentence = fmt::format("node {} is woken if it is off, and held on", *name);
  if (options.until.empty()) {
    sentence += fmt::format(" until \"kubectl kwatt release {}\"", *name);
  } else {
    const TimePoint now = session.clock.now();
    auto until = until_of(options.until, now);
    if (!until) co_return until.error();
    value += ",until=" + format_rfc3339(*until);
    sentence += fmt::format(" until {}", moment(*until, now));
  }
  Change change;
  change.resource = kube::resources::nodes();
  change.name = *name;
  change.body = annotation_patch(planner::names::kOverride, value);
  change.sentence = std::move(sentence);
  change.dry_run = options.dry_run;
  co_return co_await apply(session, std::move(change));
}

kube::Task<Result<int>> release(Session& session, Options options) {
  auto name = node_name(options.node);
  if (!name) co_return name.error();
  Change change;
  change.resource = kube::resources::nodes();
  change.name = *name;
  change.body = annotation_patch(planner::names::kOverride, api::JsonValue::null());
  change.sentence = fmt::format("node {} is no longer held", *name);
  change.dry_run = options.dry_run;
  co_return co_await apply(session, std::move(change));
}

}  // namespace

void add_override_verbs(CLI::App& app, Chosen& chosen) {
  auto wake_options = std::make_shared<Options>();
  wake_options->until = "1h";
  CLI::App* wake_verb = add_verb(app, "wake", "Switch a node on and keep it on for a while",
                                 "  kubectl kwatt wake node-7\n"
                                 "  kubectl kwatt wake node-7 --until 2030-12-24T18:00:00Z\n");
  wake_verb->add_option("NODE", wake_options->node, "The node")->required();
  wake_verb->add_option("--until", wake_options->until, "A duration from now, or an RFC 3339 time")
      ->capture_default_str();
  add_dry_run(*wake_verb, wake_options->dry_run);
  wake_verb->callback([&chosen, wake_options] {
    chosen.work = [wake_options](Session& session) { return hold(session, *wake_options, true); };
  });

  auto hold_options = std::make_shared<Options>();
  CLI::App* hold_verb = add_verb(app, "hold", "Keep a node on, whatever its policy says",
                                 "  kubectl kwatt hold node-7 --until 2h\n"
                                 "  kubectl kwatt hold node-7\n");
  hold_verb->add_option("NODE", hold_options->node, "The node")->required();
  hold_verb->add_option("--until", hold_options->until,
                        "A duration from now, or an RFC 3339 time; without it until released");
  add_dry_run(*hold_verb, hold_options->dry_run);
  hold_verb->callback([&chosen, hold_options] {
    chosen.work = [hold_options](Session& session) { return hold(session, *hold_options, false); };
  });

  auto release_options = std::make_shared<Options>();
  CLI::App* release_verb =
      add_verb(app, "release", "Undo wake and hold", "  kubectl kwatt release node-7\n");
  release_verb->add_option("NODE", release_options->node, "The node")->required();
  add_dry_run(*release_verb, release_options->dry_run);
  release_verb->callback([&chosen, release_options] {
    chosen.work = [release_options](Session& session) {
      return release(session, *release_options);
    };
  });
}

}  // namespace kwatt::cli
