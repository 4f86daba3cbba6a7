#include <algorithm>

#include <doctest/doctest.h>

#include "cli/complete.hpp"
#include "cli/output.hpp"
#include "cli/wake_test.hpp"
#include "test/cli/fake_api.hpp"
#include "test/cli/samples.hpp"

namespace kwatt::cli {
namespace {

using api::PowerState;
using kube::resources::energy_policies;
using kube::resources::node_powers;
using Words = std::vector<std::string>;

struct Fixture {
  ManualClock clock{kNow};
  FakeCluster cluster;

  Fixture() {
    cluster.add(energy_policies(), default_policy());
    for (const auto& one :
         {machine("n1", PowerState::On, "InUse"), machine("n2", PowerState::On, "MinAwake"),
          machine("n3", PowerState::Off, "Idle")}) {
      cluster.add(node_powers(), one);
      cluster.objects["/api/v1/nodes/" + one.meta.name] =
          R"({"metadata":{"name":")" + one.meta.name + R"("}})";
    }
    cluster.objects["/api/v1/namespaces/shop/pods/web-0"] =
        R"({"metadata":{"name":"web-0","namespace":"shop","uid":"u"},"status":{"phase":"Running"}})";
  }
  Called operator()(const Words& arguments) { return call(cluster, clock, arguments); }
};

TEST_SUITE("cli") {
  TEST_CASE_FIXTURE(Fixture, "status: policies, machines by state and, when asked, each node") {
    const Called called = (*this)({"status"});
    CHECK(called.status == kDone);
    CHECK(
        called.out ==
        "POLICY    MODE      READY   NODES   ON   OFF   CHANGING   SLOW   CAPPED   WATTS   WITHOUT "
        "KWATT   SAVED\n"
        "default   Enforce   True    3       2    1     0          0      0        240     362     "
        "        12.3 kWh\n"
        "\n"
        "STATE   NODES   WATTS   WHY\n"
        "On      2       240     1 InUse, 1 MinAwake\n"
        "Off     1       0       1 Idle\n");
    CHECK((*this)({"get", "--nodes"})
              .out.find("n3     Off     0       -          -     default   "
                        "Idle       5 min\n") != std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "status as YAML and JSON") {
    CHECK((*this)({"status", "-o", "yaml"}).out.starts_with("policies:\n  - name: default\n"));
    const std::string json = (*this)({"status", "-o", "json"}).out;
    CHECK(json.starts_with("{\n  \"policies\": [\n    {\n      \"name\": \"default\","));
    CHECK(json.find("\"savedWattHours\": 12345") != std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "what a change sends, and says") {
    struct Given {
      Words arguments;
      std::string path, body, said;
    };
    const Given cases[] = {
        {{"suspend", "default"},
         "/apis/kwatt.dev/v1alpha1/energypolicies/default",
         R"({"spec":{"suspend":true}})",
         "policy default is suspended"},
        {{"resume", "enp/default"},
         "/apis/kwatt.dev/v1alpha1/energypolicies/default",
         R"({"spec":{"suspend":false}})",
         "policy default is at work again"},
        {{"exclude", "n1"},
         "/api/v1/nodes/n1",
         R"({"metadata":{"annotations":{"kwatt.dev/exclude":"true"}}})",
         "node n1 is not touched any more"},
        {{"include", "node/n1"},
         "/api/v1/nodes/n1",
         R"({"metadata":{"annotations":{"kwatt.dev/exclude":null}}})",
         "node n1 takes part again"},
        {{"wake", "n3"},
         "/api/v1/nodes/n3",
         R"({"metadata":{"annotations":{"kwatt.dev/override":"on,until=2026-11-21T16:00:00Z"}}})",
         "held on until 2026-11-21T16:00:00Z (in 1 h)"},
        {{"hold", "n1", "--until", "2030-12-24T18:00:00Z"},
         "/api/v1/nodes/n1",
         R"({"metadata":{"annotations":{"kwatt.dev/override":"on,until=2030-12-24T18:00:00Z"}}})",
         "node n1 is held on until 2030-12-24T18:00:00Z"},
        {{"hold", "n1"},
         "/api/v1/nodes/n1",
         R"({"metadata":{"annotations":{"kwatt.dev/override":"on"}}})",
         "until \"kubectl kwatt release n1\""},
        {{"release", "n1"},
         "/api/v1/nodes/n1",
         R"({"metadata":{"annotations":{"kwatt.dev/override":null}}})",
         "node n1 is no longer held"},
        {{"wake-test", "n3", "--no-wait"},
         "/apis/kwatt.dev/v1alpha1/nodepowers/n3",
         R"({"metadata":{"annotations":{"kwatt.dev/wake-test":"requested"}}})",
         "a wake test of n3 is requested"},
        {{"wake-test", "n3", "--withdraw"},
         "/apis/kwatt.dev/v1alpha1/nodepowers/n3",
         R"({"metadata":{"annotations":{"kwatt.dev/wake-test":null}}})",
         "no wake test of n3 is asked for any more"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.said);
      cluster.patches.clear();
      const Called called = (*this)(given.arguments);
      CHECK(called.status == kDone);
      CHECK(called.err == "");
      CHECK(called.out.find(given.said) != std::string::npos);
      CHECK(cluster.patches == std::vector<FakeCluster::Patch>{{given.path, given.body}});

      Words dry = given.arguments;
      if (dry.back() == "--no-wait") dry.pop_back();
      dry.emplace_back("--dry-run");
      cluster.patches.clear();
      const Called tried = (*this)(dry);
      CHECK(tried.status == kDone);
      CHECK(tried.out.find(given.said) != std::string::npos);
      CHECK(tried.out.find("dry run: nothing was sent") != std::string::npos);
      CHECK(cluster.patches.empty());
    }
  }

  TEST_CASE_FIXTURE(Fixture, "mistakes are explained, and have their exit status") {
    struct Given {
      Words arguments;
      int status;
      std::string said;
    };
    const Given cases[] = {
        {{}, kUsage, "A subcommand is required"},
        {{"fly"}, kUsage, "--help"},
        {{"why"}, kUsage, "WHAT is required"},
        {{"status", "-o", "xml"}, kUsage, "xml"},
        {{"why", "nobody"}, kFailed, "there is neither a node nor a policy nobody"},
        {{"why", "node/nobody"}, kFailed, "there is no node nobody"},
        {{"why", "policy/nobody"}, kFailed, "there is no policy nobody"},
        {{"why", "pod/nobody"}, kFailed, "there is no pod shop/nobody"},
        {{"why", "service/x"}, kFailed, "write node/NAME, pod/NAMESPACE/NAME or policy/NAME"},
        {{"why", "../x"}, kFailed, "write node/NAME"},
        {{"why", "A b"}, kFailed, "is not the name of a node or policy"},
        {{"hold", "nobody"}, kFailed, "there is no node nobody"},
        {{"hold", "nobody", "--dry-run"}, kFailed, "there is no node nobody"},
        {{"hold", "policy/x"}, kFailed, "is not a node; write node/NAME or NAME"},
        {{"hold", "n1", "--until=-5m"}, kFailed, "is in the past"},
        {{"hold", "n1", "--until", "tomorrow"}, kFailed, "neither a duration such as 2h"},
        {{"suspend", "nobody"}, kFailed, "there is no policy nobody"},
        {{"wake-test", "nobody"}, kFailed, "there is no NodePower nobody"},
        {{"wake-test", "n1", "--timeout", "5"}, kFailed, "is not a duration such as 30m"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.said);
      const Called called = (*this)(given.arguments);
      CHECK(called.status == given.status);
      CHECK(called.out == "");
      CHECK(called.err.find(given.said) != std::string::npos);
    }
    CHECK(cluster.patches.empty());
  }

  TEST_CASE_FIXTURE(Fixture, "what the API server refuses is said with its words") {
    cluster.failure = fail(ErrorCode::forbidden, "GET /x", "nodes is forbidden: User \"jo\"");
    const Called called = (*this)({"why", "n1"});
    CHECK(called.status == kFailed);
    CHECK(called.err.find("nodes is forbidden: User \"jo\"") != std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "why asks for the node's pods and events only") {
    const Called called = (*this)({"why", "n1"});
    CHECK(called.status == kDone);
    CHECK(called.out.starts_with("node n1 is on because "));
    CHECK(cluster.lists ==
          Words{"/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dn1",
                "/apis/events.k8s.io/v1/namespaces/default/events?limit=500&fieldSelector="
                "regarding.kind%3DNode%2Cregarding.name%3Dn1"});
  }

  TEST_CASE_FIXTURE(Fixture, "why counts the pods that wait, where they are the reason") {
    cluster.add(node_powers(), machine("n2", PowerState::On, "PendingPods"));
    for (const std::string name : {"a", "b"}) {
      cluster.objects["/api/v1/pods/" + name] =
          R"({"metadata":{"name":")" + name +
          R"(","namespace":"shop","uid":"u"},"status":{"phase":"Pending","conditions":[{"type":)"
          R"("PodScheduled","status":"False","reason":"Unschedulable"}]}})";
    }
    CHECK((*this)({"why", "n2"})
              .out.starts_with(
                  "node n2 is on because 2 pods are waiting for room (PendingPods), for 5 min."));
    CHECK(std::count(cluster.lists.begin(), cluster.lists.end(),
                     "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3D") == 1);
  }

  TEST_CASE_FIXTURE(Fixture, "why of a bare name that is no node's is that of a policy") {
    CHECK((*this)({"why", "default"}).out.starts_with("policy default is enforced"));
    CHECK((*this)({"why", "policy/default", "-o", "json"})
              .out.starts_with("{\n  \"kind\": \"policy\","));
    CHECK((*this)({"why", "pod/shop/web-0"}).status == kDone);
    CHECK((*this)({"why", "pod/web-0"}).status == kDone);
  }

  TEST_CASE_FIXTURE(Fixture, "a wake test is followed to its result") {
    int asked = 0;
    cluster.on_get = [&] {
      auto now = machine("n3", PowerState::Off, "WakeNotVerified");
      now.meta.annotations.set("kwatt.dev/wake-test", "requested");
      ++asked;
      if (asked == 2) {
        now.status.operation.id = "x";
        now.status.operation.kind = api::OperationKind::PowerOn;
        now.status.operation.step = "WaitReady";
      }
      if (asked > 2) now.status.memory.wake_verified_at = kNow + seconds{70};
      cluster.add(node_powers(), now);
    };
    const Called called = (*this)({"wake-test", "n3"});
    CHECK(called.status == kDone);
    CHECK(called.err == "[0 s] power-on at step WaitReady\n");
    CHECK(called.out == "passed: the machine was switched off and woken again in 1 min 10 s\n");
  }

  TEST_CASE("how far a wake test has come") {
    struct Given {
      std::string name;
      void (*arrange)(api::NodePowerStatus&);
      bool requested;
      WakeTestView::Outcome outcome;
      std::string sentence;
    };
    using Outcome = WakeTestView::Outcome;
    const Given cases[] = {
        {"the node is in use", [](auto& s) { s.decision.message = "3 pods"; }, true,
         Outcome::waiting, "waits: the node is on (InUse): 3 pods"},
        {"did not come up", [](auto& s) { s.power_state = PowerState::WakeFailed; }, false,
         Outcome::failed, "failed: the machine did not come up (InUse)"},
        {"the BMC refuses", [](auto& s) { s.memory.failure_count = 1; }, true, Outcome::failed,
         "failed: the machine did not do what was asked (InUse)"},
        {"an older proof is none", [](auto& s) { s.memory.wake_verified_at = ago(hours{1}); }, true,
         Outcome::waiting, "waits: the node is on (InUse)"},
        {"somebody took it back", [](auto&) {}, false, Outcome::failed,
         "failed: the request was taken back before there was a result"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.name);
      api::NodePowerStatus before = machine("n1", PowerState::On, "InUse").status;
      if (given.name == "an older proof is none") before.memory.wake_verified_at = ago(hours{1});
      api::NodePowerStatus now = before;
      given.arrange(now);
      const WakeTestView view = view_of(before, now, given.requested, kNow);
      CHECK(view.outcome == given.outcome);
      CHECK(view.sentence == given.sentence);
    }
  }

  TEST_CASE_FIXTURE(Fixture, "completion: verbs, options, values and names, then the directive") {
    struct Given {
      Words words;
      std::string printed;
    };
    const Given cases[] = {
        {{"wa"}, "wake\nwake-test\n:4\n"},
        {{"why", "node/n"}, "node/n1\nnode/n2\nnode/n3\n:4\n"},
        {{"why", "pod/"}, ":4\n"},
        {{"why", "po"}, "policy/default\n:4\n"},
        {{"hold", ""}, "n1\nn2\nn3\n:4\n"},
        {{"hold", "n1", ""}, ":4\n"},
        {{"suspend", "d"}, "default\n:4\n"},
        {{"status", "-o", ""}, "json\ntable\nyaml\n:4\n"},
        {{"history", "-o", ""}, "csv\njson\ntable\n:4\n"},
        {{"history", "--kind", "de"}, "decisions\n:4\n"},
        {{"history", "--policy", ""}, "default\n:4\n"},
        {{"history", "--limit", ""}, ":4\n"},
        {{"history", "node"}, ":4\n"},
        {{"history", "n1", "--o"}, "--out-dir\n--output\n:4\n"},
        {{"status", "--n"}, "--nodes\n:4\n"},
        {{"--context", "x", "release", "n1"}, "n1\n:4\n"},
        {{"completion", ""}, "bash\n:4\n"},
        {{"fly", ""}, ":4\n"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.printed);
      Words arguments = given.words;
      arguments.insert(arguments.begin(), kCompleteVerb);
      CHECK((*this)(arguments).out == given.printed);
    }
    cluster.failure = fail(ErrorCode::unavailable, "no server");
    const Called called = (*this)({kCompleteVerb, "hold", ""});
    CHECK(called.out == ":4\n");
    CHECK(called.err == "");
  }

  TEST_CASE_FIXTURE(Fixture, "version, help and the completion script need no API server") {
    cluster.failure = fail(ErrorCode::unavailable, "no server");
    CHECK((*this)({"--version"}).out == std::string("kubectl-kwatt ") + KWATT_VERSION + "\n");
    CHECK((*this)({"version"}).out == std::string("kubectl-kwatt ") + KWATT_VERSION + "\n");
    CHECK((*this)({"why", "--help"}).out.find("Examples:\n  kubectl kwatt why") !=
          std::string::npos);
    CHECK((*this)({"completion", "bash"}).out.find("complete -F _kubectl_kwatt kubectl-kwatt") !=
          std::string::npos);
  }
}

TEST_SUITE("cli output") {
  TEST_CASE("durations, for people") {
    CHECK(human(Duration{0}) == "0 s");
    CHECK(human(seconds{59}) == "59 s");
    CHECK(human(seconds{250}) == "4 min 10 s");
    CHECK(human(minutes{10} + seconds{5}) == "10 min");
    CHECK(human(hours{2} + minutes{5}) == "2 h 5 min");
    CHECK(human(hours{24 * 12}) == "12 d");
    CHECK(human(seconds{-5}) == "0 s");
    CHECK(relative(ago(hours{2}), kNow) == "2 h ago");
    CHECK(relative(kNow + seconds{5}, kNow) == "in 5 s");
    CHECK(relative(kNow, kNow) == "now");
  }

  TEST_CASE("YAML keeps text text") {
    CHECK(
        yaml_of(R"({"a":"true","b":"1","c":1,"d":[],"e":{},"f":["x: y",""],"g":true,"h":null})") ==
        "a: \"true\"\nb: \"1\"\nc: 1\nd:\n  []\ne:\n  {}\nf:\n  - \"x: y\"\n  - \"\"\ng: "
        "true\nh: ~\n");
  }
}

}  // namespace
}  // namespace kwatt::cli
