// why: one object with what belongs to it, and the explanation.
#include <algorithm>

#include <fmt/format.h>

#include "api/reason.hpp"
#include "cli/explain.hpp"
#include "cli/output.hpp"
#include "cli/read.hpp"
#include "kube/path.hpp"

namespace kwatt::cli {
namespace {

struct Options {
  std::string what, namespace_name;
  Format format = Format::table;
};

// What people wrote: node/X, X, pod/NS/NAME, pod/NAME, policy/NAME.
struct Subject {
  std::optional<Kind> kind;  // nullopt: a bare name, a node's or a policy's
  std::string namespace_name, name;
};

Result<Subject> subject_of(const std::string& what, const std::string& default_namespace) {
  Subject subject;
  const auto slash = what.find('/');
  if (slash == std::string::npos) {
    auto name = object_name(what, "node or policy");
    if (!name) return name.error();
    subject.name = *name;
    return subject;
  }
  subject.kind = kind_of(std::string_view(what).substr(0, slash));
  if (!subject.kind) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\": write node/NAME, pod/NAMESPACE/NAME or policy/NAME", what));
  }
  std::string rest = what.substr(slash + 1);
  subject.namespace_name = default_namespace;
  if (const auto second = rest.find('/');
      subject.kind == Kind::pod && second != std::string::npos) {
    auto namespace_name = object_name(rest.substr(0, second), "namespace");
    if (!namespace_name) return namespace_name.error();
    subject.namespace_name = *namespace_name;
    rest = rest.substr(second + 1);
  }
  auto name = object_name(rest, what.substr(0, slash));
  if (!name) return name.error();
  subject.name = *name;
  return subject;
}

// Events need a right of their own; without it the rest of the answer is still good.
kube::Task<std::vector<EventView>> events_of(Session& session, std::string kind, std::string name,
                                             std::string namespace_name) {
  auto events = co_await read_all<EventView>(
      session, kube::resources::events(),
      "fieldSelector=" +
          kube::percent_encode(fmt::format("regarding.kind={},regarding.name={}", kind, name)),
      namespace_name);
  if (events) co_return std::move(*events);
  session.err << "warning: no events: " << events.error().text() << "\n";
  co_return std::vector<EventView>();
}

kube::Task<Result<NodeFacts>> node_facts(Session& session, std::string name) {
  NodeFacts facts;
  facts.name = name;
  auto node = co_await find<api::Node>(session, kube::resources::nodes(), kube::Name("", name));
  if (!node) co_return node.error();
  facts.node = std::move(*node);
  auto machine =
      co_await find<api::NodePower>(session, kube::resources::node_powers(), kube::Name("", name));
  if (!machine) co_return machine.error();
  facts.machine = std::move(*machine);
  if (!facts.node && !facts.machine) {
    co_return fail(ErrorCode::not_found, fmt::format("there is no node {}", name));
  }
  if (facts.machine && !facts.machine->status.decision.policy.empty()) {
    auto policy =
        co_await find<api::EnergyPolicy>(session, kube::resources::energy_policies(),
                                         kube::Name("", facts.machine->status.decision.policy));
    if (!policy) co_return policy.error();
    facts.policy = std::move(*policy);
  }
  auto pods = co_await read_all<api::Pod>(session, kube::resources::pods(),
                                          field_selector("spec.nodeName", name));
  if (!pods) co_return pods.error();
  facts.pods = std::move(*pods);
  if (facts.machine &&
      facts.machine->status.decision.reason == to_string(api::Reason::PendingPods)) {
    auto unbound = co_await read_all<api::Pod>(session, kube::resources::pods(),
                                               field_selector("spec.nodeName", ""));
    if (!unbound) co_return unbound.error();
    facts.pending = std::count_if(unbound->begin(), unbound->end(), [](const api::Pod& pod) {
      return pod.scheduled == api::PodScheduled::unschedulable;
    });
  }
  facts.events = co_await events_of(session, "Node", name, "default");
  co_return std::move(facts);
}

kube::Task<Result<Explanation>> of_pod(Session& session, Subject subject) {
  PodFacts facts;
  auto pod = co_await read<api::Pod>(session, kube::resources::pods(),
                                     kube::Name(subject.namespace_name, subject.name));
  if (!pod) co_return pod.error();
  facts.pod = std::move(*pod);
  if (!facts.pod.node_name.empty()) {
    auto node = co_await node_facts(session, facts.pod.node_name);
    if (!node) co_return node.error();
    facts.node = std::move(*node);
  }
  auto machines = co_await read_all<api::NodePower>(session, kube::resources::node_powers());
  if (!machines) co_return machines.error();
  facts.machines = std::move(*machines);
  auto policies = co_await read_all<api::EnergyPolicy>(session, kube::resources::energy_policies());
  if (!policies) co_return policies.error();
  facts.policies = std::move(*policies);
  facts.events = co_await events_of(session, "Pod", subject.name, subject.namespace_name);
  co_return explain_pod(facts, session.clock.now());
}

kube::Task<Result<Explanation>> of_policy(Session& session, api::EnergyPolicy policy) {
  PolicyFacts facts;
  const std::string name = policy.meta.name;
  facts.policy = std::move(policy);
  auto machines = co_await read_all<api::NodePower>(session, kube::resources::node_powers());
  if (!machines) co_return machines.error();
  facts.machines = std::move(*machines);
  facts.events = co_await events_of(session, "EnergyPolicy", name, "default");
  co_return explain_policy(facts, session.clock.now());
}

kube::Task<Result<Explanation>> explanation_of(Session& session, Subject subject) {
  if (subject.kind == Kind::pod) co_return co_await of_pod(session, std::move(subject));
  if (subject.kind == Kind::policy) {
    auto policy = co_await read<api::EnergyPolicy>(session, kube::resources::energy_policies(),
                                                   kube::Name("", subject.name));
    if (!policy) co_return policy.error();
    co_return co_await of_policy(session, std::move(*policy));
  }
  auto facts = co_await node_facts(session, subject.name);
  if (facts) co_return explain_node(*facts, session.clock.now());
  if (subject.kind || facts.error().code != ErrorCode::not_found) co_return facts.error();
  // A bare name that is no node's may be a policy's.
  auto policy = co_await find<api::EnergyPolicy>(session, kube::resources::energy_policies(),
                                                 kube::Name("", subject.name));
  if (!policy) co_return policy.error();
  if (*policy) co_return co_await of_policy(session, std::move(**policy));
  co_return fail(ErrorCode::not_found,
                 fmt::format("there is neither a node nor a policy {}; a pod is named "
                             "pod/NAMESPACE/NAME",
                             subject.name));
}

kube::Task<Result<int>> why(Session& session, Options options) {
  auto subject = subject_of(options.what, options.namespace_name.empty() ? session.namespace_name
                                                                         : options.namespace_name);
  if (!subject) co_return subject.error();
  auto explanation = co_await explanation_of(session, std::move(*subject));
  if (!explanation) co_return explanation.error();
  session.out << shown(options.format, text_of(*explanation, session.clock.now()),
                       json_of(*explanation));
  co_return kDone;
}

}  // namespace

void add_why(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, "why", "Explain why a node, a pod or a policy is as it is",
                            "  kubectl kwatt why node-7\n"
                            "  kubectl kwatt why node/node-7 -o yaml\n"
                            "  kubectl kwatt why pod/shop/web-0\n"
                            "  kubectl kwatt why policy/default\n");
  verb->add_option("WHAT", options->what, "node/NAME, NAME, pod/NAMESPACE/NAME or policy/NAME")
      ->required();
  verb->add_option("-n,--namespace", options->namespace_name,
                   "Namespace of pod/NAME (default: that of the context)");
  add_format(*verb, options->format);
  verb->callback([&chosen, options] {
    chosen.work = [options](Session& session) { return why(session, *options); };
  });
}

}  // namespace kwatt::cli
