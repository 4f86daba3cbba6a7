#include <functional>

#include <doctest/doctest.h>

#include "planner/candidates.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::PodBuilder;
using test::World;

TEST_CASE("which pods may be moved") {
  struct Case {
    std::string name;
    std::string key;
    std::function<void(World&, PodBuilder&)> given;
    std::optional<Reason> reason;
  };
  const auto nothing = std::optional<Reason>{};
  const std::string safe = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  const Case cases[] = {
      {"a replica of a ReplicaSet", "default/p-1", [](World&, PodBuilder&) {}, nothing},
      {"a single replica, too", "default/p-1",
       [](World& w, PodBuilder&) { w.replicas["ReplicaSet-default-p"] = 1; }, nothing},
      {"a StatefulSet's pod", "default/p-0",
       [](World&, PodBuilder& p) { p.owner("StatefulSet", "p"); }, nothing},
      {"a Job's pod", "default/p-0", [](World&, PodBuilder& p) { p.owner("Job", "p"); }, nothing},
      {"a bare pod", "default/p", [](World&, PodBuilder& p) { p.bare(); }, Reason::PodNotMovable},
      {"a pod of an unknown controller", "default/p-1",
       [](World&, PodBuilder& p) { p.owner("GameServer", "p"); }, Reason::PodNotMovable},
      {"local storage", "default/p-1", [](World&, PodBuilder& p) { p.local_storage(); },
       Reason::LocalStorage},
      {"kube-system without a budget", "kube-system/p-1", [](World&, PodBuilder&) {},
       Reason::PodNotMovable},
      {"kube-system with a budget", "kube-system/p-1",
       [](World& w, PodBuilder& p) {
         p.label("app", "p");
         w.budget("kube-system/b", "app", "p", 1);
       },
       nothing},
      {"safe-to-evict=false", "default/p-1",
       [&](World&, PodBuilder& p) { p.annotation(safe, "false"); }, Reason::DoNotDisrupt},
      {"safe-to-evict=true lifts bare", "default/p",
       [&](World&, PodBuilder& p) { p.bare().annotation(safe, "true"); }, nothing},
      {"safe-to-evict=true lifts local storage", "default/p-1",
       [&](World&, PodBuilder& p) { p.local_storage().annotation(safe, "true"); }, nothing},
      {"safe-to-evict=true lifts kube-system", "kube-system/p-1",
       [&](World&, PodBuilder& p) { p.annotation(safe, "true"); }, nothing},
      {"safe-to-evict=true does not lift a budget", "default/p-1",
       [&](World& w, PodBuilder& p) {
         p.label("app", "p").annotation(safe, "true");
         w.budget("default/b", "app", "p", 0);
       },
       Reason::PDBBlocked},
      {"Karpenter's do-not-disrupt", "default/p-1",
       [](World&, PodBuilder& p) { p.annotation("karpenter.sh/do-not-disrupt", "true"); },
       Reason::DoNotDisrupt},
      {"ours", "default/p-1",
       [](World&, PodBuilder& p) { p.annotation("kwatt.dev/do-not-disrupt", "true"); },
       Reason::DoNotDisrupt},
      {"ours set to false", "default/p-1",
       [](World&, PodBuilder& p) { p.annotation("kwatt.dev/do-not-disrupt", "false"); }, nothing},
      {"the descheduler's, by its presence", "default/p-1",
       [](World&, PodBuilder& p) {
         p.annotation("descheduler.alpha.kubernetes.io/prefer-no-eviction", "");
       },
       Reason::DoNotDisrupt},
      {"a pod that would survive our taint", "default/p-1",
       [](World&, PodBuilder& p) { p.tolerate("", "Exists", "", ""); }, Reason::PodNotMovable},
      {"a toleration of another effect is no matter", "default/p-1",
       [](World&, PodBuilder& p) { p.tolerate("", "Exists", "", "NoSchedule"); }, nothing},
      {"a budget with room", "default/p-1",
       [](World& w, PodBuilder& p) {
         p.label("app", "p");
         w.budget("default/b", "app", "p", 1);
       },
       nothing},
      {"a budget without room", "default/p-1",
       [](World& w, PodBuilder& p) {
         p.label("app", "p");
         w.budget("default/b", "app", "p", 0);
       },
       Reason::PDBBlocked},
      {"a budget of another namespace", "default/p-1",
       [](World& w, PodBuilder& p) {
         p.label("app", "p");
         w.budget("other/b", "app", "p", 0);
       },
       nothing},
      {"a budget over everything in the namespace", "default/p-1",
       [](World& w, PodBuilder&) { w.budget("default/b", "app", "p", 0).selector = {}; },
       Reason::PDBBlocked},
      {"a budget without a selector covers nothing", "default/p-1",
       [](World& w, PodBuilder&) {
         auto& budget = w.budget("default/b", "app", "p", 0);
         budget.selector = {};
         budget.has_selector = false;
       },
       nothing},
      {"two budgets, which the Eviction API refuses", "default/p-1",
       [](World& w, PodBuilder& p) {
         p.label("app", "p");
         w.budget("default/b", "app", "p", 5);
         w.budget("default/c", "app", "p", 5);
       },
       Reason::PDBBlocked},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n1");
    c.given(w, w.pod(c.key).on("n1"));
    const Snapshot s = w.snapshot();
    const api::DisruptionSpec disruption;
    const Candidates candidates{s, disruption};
    const auto verdict = candidates.immovable(*s.nodes.at("n1").pods[0]);
    CHECK((verdict ? std::optional{verdict->reason} : std::nullopt) == c.reason);
    if (verdict) CHECK(verdict->message.find(c.key) != std::string::npos);
  }
}

TEST_CASE("a policy may choose not to respect do-not-disrupt annotations, but never budgets") {
  World w;
  w.node("n1");
  w.pod("default/p-1").on("n1").annotation("karpenter.sh/do-not-disrupt", "true");
  w.pod("default/q-1").on("n1").label("app", "q");
  w.budget("default/b", "app", "q", 0);
  const Snapshot s = w.snapshot();
  api::DisruptionSpec disruption;
  disruption.respect_do_not_disrupt = false;
  const Candidates candidates{s, disruption};
  CHECK_FALSE(candidates.immovable(*s.nodes.at("n1").pods[0]).has_value());
  CHECK(candidates.immovable(*s.nodes.at("n1").pods[1])->reason == Reason::PDBBlocked);
}

}  // namespace
}  // namespace kwatt::planner
