// wake-test: asks the controller to switch a machine off and on again, and waits for the result.
#include "cli/wake_test.hpp"

#include <fmt/format.h>

#include "api/state_words.hpp"
#include "cli/change.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "net/run.hpp"

namespace kwatt::cli {
namespace {

constexpr std::string_view kAnnotation = "kwatt.dev/wake-test";
constexpr std::string_view kRequested = "requested";
constexpr Duration kPoll = std::chrono::seconds{1};

struct Options {
  std::string node;
  std::string timeout = "30m";
  bool no_wait = false, withdraw = false, dry_run = false;
  Format format = Format::table;
};

std::string json_of(const std::string& node, const WakeTestView& view, TimePoint begun,
                    TimePoint now) {
  api::MergePatch body;  // an object of plain members
  body.set({"node"}, node)
      .set({"passed"}, view.outcome == WakeTestView::Outcome::passed)
      .set({"sentence"}, view.sentence)
      .set({"seconds"}, std::chrono::duration_cast<std::chrono::seconds>(now - begun).count());
  return body.text();
}

void show(Session& session, const Options& options, const std::string& node,
          const WakeTestView& view, TimePoint begun) {
  session.out << shown(options.format, view.sentence + "\n",
                       json_of(node, view, begun, session.clock.now()));
}

kube::Task<Result<int>> wait(Session& session, Options options, std::string node,
                             api::NodePower before, Duration timeout) {
  const TimePoint begun = session.clock.now();
  const MonotonicPoint start = session.clock.monotonic();
  std::string told;
  for (;;) {
    auto machine = co_await read<api::NodePower>(session, kube::resources::node_powers(),
                                                 kube::Name("", node));
    // A connection that fails once is no result.
    if (!machine && !machine.error().transient()) co_return machine.error();
    if (machine) {
      const bool asked = machine->meta.annotations.get(kAnnotation) == kRequested;
      const WakeTestView view = view_of(before.status, machine->status, asked, begun);
      if (view.outcome != WakeTestView::Outcome::waiting) {
        show(session, options, node, view, begun);
        co_return view.outcome == WakeTestView::Outcome::passed ? kDone : kFailed;
      }
      if (view.sentence != told) {
        session.err << fmt::format("[{}] {}\n", human(session.clock.now() - begun), view.sentence);
        session.err.flush();
        told = view.sentence;
      }
    }
    if (session.clock.monotonic() - start >= timeout) {
      co_return fail(ErrorCode::timeout,
                     fmt::format("no result after {}; the request stays (\"kubectl kwatt wake-test "
                                 "{} --withdraw\" takes it back). Last seen: {}",
                                 options.timeout, node, told.empty() ? "nothing" : told));
    }
    co_await net::sleep(kPoll);
  }
}

kube::Task<Result<int>> wake_test(Session& session, Options options) {
  auto name = node_name(options.node);
  if (!name) co_return name.error();
  const auto timeout = parse_go_duration(options.timeout);
  if (!timeout || *timeout <= Duration{0}) {
    co_return fail(ErrorCode::invalid_argument,
                   fmt::format("--timeout {} is not a duration such as 30m", options.timeout));
  }
  auto before =
      co_await read<api::NodePower>(session, kube::resources::node_powers(), kube::Name("", *name));
  if (!before) co_return before.error();
  Change change;
  change.resource = kube::resources::node_powers();
  change.name = *name;
  change.dry_run = options.dry_run;
  if (options.withdraw) {
    change.body = annotation_patch(kAnnotation, api::JsonValue::null());
    change.sentence = fmt::format("no wake test of {} is asked for any more", *name);
    co_return co_await apply(session, std::move(change));
  }
  if (before->spec.bmc.address.empty()) {
    co_return fail(
        ErrorCode::unsupported,
        fmt::format("{} cannot be tested: spec.bmc.address of its NodePower is empty, so "
                    "nothing can switch it on",
                    *name));
  }
  change.body = annotation_patch(kAnnotation, kRequested);
  change.sentence = fmt::format("a wake test of {} is requested", *name);
  if (options.no_wait || options.dry_run) co_return co_await apply(session, std::move(change));
  auto sent = co_await session.client.patch(change.resource, kube::Name("", *name),
                                            kube::Client::PatchType::merge, "kubectl-kwatt", "",
                                            change.body);
  if (!sent) co_return sent.error().with_context("NodePower " + *name);
  co_return co_await wait(session, std::move(options), std::move(*name), std::move(*before),
                          *timeout);
}

}  // namespace

WakeTestView view_of(const api::NodePowerStatus& before, const api::NodePowerStatus& now,
                     bool requested, TimePoint begun) {
  using Outcome = WakeTestView::Outcome;
  WakeTestView view;
  const auto& verified = now.memory.wake_verified_at;
  if (verified && verified != before.memory.wake_verified_at) {
    view.outcome = Outcome::passed;
    view.sentence = fmt::format("passed: the machine was switched off and woken again in {}",
                                human(*verified - begun));
    return view;
  }
  const bool failed_again = now.memory.failure_count > before.memory.failure_count;
  if (now.power_state == api::PowerState::WakeFailed || failed_again) {
    view.outcome = Outcome::failed;
    view.sentence = fmt::format("failed: {} ({})",
                                now.power_state == api::PowerState::WakeFailed
                                    ? "the machine did not come up"
                                    : "the machine did not do what was asked",
                                now.decision.reason);
    if (!now.decision.message.empty()) view.sentence += ": " + now.decision.message;
    return view;
  }
  if (!now.operation.id.empty()) {
    view.sentence = fmt::format("{} at step {}", phrase(now.operation.kind), now.operation.step);
    return view;
  }
  if (!requested) {
    view.outcome = Outcome::failed;
    view.sentence = "failed: the request was taken back before there was a result";
    return view;
  }
  // A test starts like any power-off: the node must be empty, and the policy must allow it.
  view.sentence =
      fmt::format("waits: the node is {}{}", phrase(now.power_state),
                  now.decision.reason.empty() ? std::string() : " (" + now.decision.reason + ")");
  if (!now.decision.message.empty()) view.sentence += ": " + now.decision.message;
  return view;
}

void add_wake_test(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, "wake-test",
                            "Have a machine switched off and woken, to prove that it can be woken",
                            "  kubectl kwatt wake-test node-7\n"
                            "  kubectl kwatt wake-test node-7 --no-wait\n"
                            "  kubectl kwatt wake-test node-7 --withdraw\n");
  verb->add_option("NODE", options->node, "The node; it is tested as soon as it is empty")
      ->required();
  verb->add_flag("--no-wait", options->no_wait, "Do not wait for the result");
  verb->add_flag("--withdraw", options->withdraw, "Take a request back");
  verb->add_option("--timeout", options->timeout, "Wait so long for the result")
      ->capture_default_str();
  add_dry_run(*verb, options->dry_run);
  add_format(*verb, options->format);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return wake_test(session, *options); };
  });
}

}  // namespace kwatt::cli
