#include <doctest/doctest.h>

#include "reconcilers/relay.hpp"
#include "reconcilers/wake_on_lan.hpp"
#include "test/hardware/print_result.hpp"
#include "test/reconcilers/stores_by_hand.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

TEST_SUITE_BEGIN("wol");

namespace kwatt::reconcilers {
namespace {

using hardware::MacAddress;
using hardware::MachinePower;
using hardware::Reset;
using hardware::WakeNote;
using std::chrono::minutes;
using std::chrono::seconds;

const MacAddress kMac{{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};
const TimePoint kNow = *parse_rfc3339("2026-11-20T12:00:00Z");

Relay relay(const std::string& node, const std::string& zone = "", int attempt = 0,
            std::size_t notes = 0) {
  Relay made;
  made.node = node;
  made.zone = zone;
  made.attempt = attempt;
  made.notes = notes;
  return made;
}

TEST_CASE("wol: which relay is asked") {
  const struct {
    const char* name;
    std::vector<Relay> relays;
    const char* want;  // nullptr: none
  } cases[] = {
      {"none is awake", {}, nullptr},
      {"by name among equals", {relay("n3"), relay("n2")}, "n2"},
      {"the same zone first", {relay("n1", "b"), relay("n2", "a")}, "n2"},
      {"another zone before nobody", {relay("n1", "b")}, "n1"},
      {"one that was not asked before one that was", {relay("n1", "a", 1), relay("n2", "b")}, "n2"},
      {"all were asked: the one whose turn was longest ago",
       {relay("n1", "a", 3), relay("n2", "b", 2)},
       "n2"},
      {"the one with less to do", {relay("n1", "a", 0, 2), relay("n2", "a", 0, 1)}, "n2"},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    const auto chosen = choose_relay("a", c.relays);
    REQUIRE(chosen.has_value() == (c.want != nullptr));
    if (chosen) CHECK(*chosen == c.want);
  }
}

api::Node node(const std::string& name, bool ready = true, const std::string& zone = "a") {
  api::Node made;
  made.meta.name = name;
  made.meta.resource_version = "5";
  if (!zone.empty()) made.meta.labels.set("topology.kubernetes.io/zone", zone);
  api::Condition condition;
  condition.type = "Ready";
  condition.status = ready ? "True" : "Unknown";
  made.conditions.push_back(condition);
  return made;
}
api::NodePower machine(const std::string& name, Duration reported_ago = minutes{1}) {
  api::NodePower made;
  made.meta.name = name;
  made.status.power_state = api::PowerState::On;
  made.status.report.boot_id = "boot-" + name;
  made.status.report.time = kNow - reported_ago;
  return made;
}

TEST_CASE("wol: who can be a relay") {
  const api::NodePower good = machine("n1");
  CHECK(can_relay(node("n1"), &good, kNow));
  CHECK_FALSE(can_relay(node("n1", false), &good, kNow));
  CHECK_FALSE(can_relay(node("n1"), nullptr, kNow));
  const api::NodePower silent = machine("n1", minutes{16});
  CHECK_FALSE(can_relay(node("n1"), &silent, kNow));
  api::NodePower agentless = machine("n1");
  agentless.status.report = {};
  CHECK_FALSE(can_relay(node("n1"), &agentless, kNow));
  api::NodePower leaving = machine("n1");
  leaving.status.operation.kind = api::OperationKind::PowerOff;
  CHECK_FALSE(can_relay(node("n1"), &leaving, kNow));
  api::NodePower off = machine("n1");
  off.status.power_state = api::PowerState::Off;
  CHECK_FALSE(can_relay(node("n1"), &off, kNow));
}

WakeNote note(const std::string& id, const std::string& for_node, TimePoint time = kNow) {
  return {id, for_node, kMac, time};
}

TEST_CASE("wol: notes of wakes that are over leave the relay, and no others") {
  const auto operation_of = [](const std::string& name) {
    api::Operation operation;
    if (name == "waking") operation.id = "op-1";
    if (name == "next") operation.id = "op-9";  // another wake than that of the note
    operation.kind = api::OperationKind::PowerOn;
    if (name == "leaving") {
      operation.id = "op-1";
      operation.kind = api::OperationKind::PowerOff;
    }
    return operation;
  };
  const auto patch_for = [&](const std::string& text) {
    api::Node made = node("relay");
    if (!text.empty()) made.meta.annotations.set("kwatt.dev/wake-lan", text);
    return outdated_notes(made, operation_of);
  };
  const auto notes = [](std::vector<WakeNote> list) { return hardware::format_wake_notes(list); };
  CHECK_FALSE(patch_for("").has_value());
  CHECK_FALSE(patch_for("somebody's own text").has_value());
  CHECK_FALSE(patch_for(notes({note("op-1/1", "waking")})).has_value());
  for (const char* done : {"awake", "next", "leaving"}) {
    CAPTURE(done);
    const auto patch = patch_for(notes({note("op-1/1", done)}));
    REQUIRE(patch);
    CHECK(patch->remove_annotations == std::vector<std::string>{"kwatt.dev/wake-lan"});
  }
  const auto mixed = patch_for(notes({note("op-1/1", "waking"), note("op-1/1", "awake")}));
  REQUIRE(mixed);
  CHECK(mixed->set_annotations.get("kwatt.dev/wake-lan") == notes({note("op-1/1", "waking")}));
}

// The stores of a controller, filled by hand, and an API server that keeps what it was asked.
struct Cluster : test::StubClient, test::StoresByHand {
  ManualClock clock{kNow};
  boost::asio::io_context io{1};
  std::string renewed = "2026-11-20T12:00:00.000000Z";
  std::vector<std::pair<std::string, std::string>> patches;  // node and body
  std::unique_ptr<hardware::PowerDriver> driver =
      make_wake_on_lan_driver(*this, stores, clock, "sleeper", kMac);

  Task<Text> get(const kube::Resource&, kube::Name name) override {
    CHECK(name.namespace_name == "kube-node-lease");
    CHECK(name.name == "sleeper");
    if (renewed.empty()) co_return fail(ErrorCode::not_found, "HTTP 404");
    co_return R"({"kind":"Lease","metadata":{"name":"sleeper"},"spec":{"renewTime":")" + renewed +
        "\"}}";
  }
  Task<Text> patch(const kube::Resource&, kube::Name name, PatchType, std::string, std::string,
                   std::string body) override {
    patches.emplace_back(name.name, body);
    co_return body;
  }
  Result<void> reset(Reset what) { return test::run_task(io, driver->reset(what, "op-1")); }
  MachinePower state() {
    const auto state = test::run_task(io, driver->state());
    REQUIRE(state.has_value());
    return *state;
  }
  // What the last patch would do, done.
  void carry_out(const std::string& relay, const WakeNote& note) {
    api::Node changed = *nodes.get(relay);
    changed.meta.annotations.set("kwatt.dev/wake-lan", hardware::format_wake_notes({note}));
    nodes.put(changed);
  }
};

TEST_CASE_FIXTURE(Cluster, "wol: a wake leaves a note on a relay, with id, address and time") {
  nodes.put(node("sleeper", false));
  nodes.put(node("relay1"));
  machines.put(machine("relay1"));
  REQUIRE(reset(Reset::on));
  REQUIRE(patches.size() == 1);
  CHECK(patches[0].first == "relay1");
  CHECK(patches[0].second ==
        R"({"metadata":{"annotations":{"kwatt.dev/wake-lan":"{\"id\":\"op-1/1\",)"
        R"(\"mac\":\"52:54:00:12:34:56\",\"node\":\"sleeper\",)"
        R"(\"time\":\"2026-11-20T12:00:00Z\"}"},"resourceVersion":"5"}})");
}

TEST_CASE_FIXTURE(Cluster, "wol: the next attempt comes later and through another relay") {
  nodes.put(node("sleeper", false));
  for (const char* name : {"relay1", "relay2"}) {
    nodes.put(node(name));
    machines.put(machine(name));
  }
  REQUIRE(reset(Reset::on));
  REQUIRE(patches.size() == 1);
  CHECK(patches[0].first == "relay1");
  carry_out("relay1", note("op-1/1", "sleeper"));
  clock.advance(seconds{10});
  REQUIRE(reset(Reset::on));
  CHECK(patches.size() == 1);
  clock.advance(seconds{21});
  REQUIRE(reset(Reset::on));
  REQUIRE(patches.size() == 2);
  CHECK(patches[1].first == "relay2");
  CHECK(patches[1].second.find("op-1/2") != std::string::npos);
  carry_out("relay2", note("op-1/2", "sleeper", clock.now()));
  clock.advance(seconds{31});
  REQUIRE(reset(Reset::on));
  REQUIRE(patches.size() == 3);
  CHECK(patches[2].first == "relay1");
  CHECK(patches[2].second.find("op-1/3") != std::string::npos);
}

TEST_CASE_FIXTURE(Cluster, "wol: one relay may wake several machines") {
  nodes.put(node("sleeper", false));
  nodes.put(node("relay1"));
  machines.put(machine("relay1"));
  carry_out("relay1", note("op-7/1", "other"));
  REQUIRE(reset(Reset::on));
  REQUIRE(patches.size() == 1);
  CHECK(patches[0].second.find("op-7/1") != std::string::npos);
  CHECK(patches[0].second.find("op-1/1") != std::string::npos);
}

TEST_CASE_FIXTURE(Cluster, "wol: without a relay a wake fails with the reason") {
  nodes.put(node("sleeper", false));
  nodes.put(node("agentless"));
  nodes.put(node("taken"));
  machines.put(machine("taken"));
  api::Node taken = node("taken");
  taken.meta.annotations.set("kwatt.dev/wake-lan", "somebody's own text");
  nodes.put(taken);
  const auto done = reset(Reset::on);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::unavailable);
  CHECK(done.error().message.find("no awake node with an agent") != std::string::npos);
  CHECK(patches.empty());
}

TEST_CASE_FIXTURE(Cluster, "wol: switching off is asked of the node's own agent, for this boot") {
  nodes.put(node("sleeper"));
  api::NodePower mine = machine("sleeper");
  machines.put(mine);
  const auto refused = reset(Reset::graceful_shutdown);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(refused.error().message.find("--power-off-command") != std::string::npos);

  mine.status.report.can_power_off = true;
  machines.put(mine);
  REQUIRE(reset(Reset::graceful_shutdown));
  REQUIRE(patches.size() == 1);
  CHECK(patches[0].first == "sleeper");
  CHECK(patches[0].second.find(R"("kwatt.dev/power-off-boot":"boot-sleeper")") !=
        std::string::npos);
  CHECK(patches[0].second.find(R"("kwatt.dev/power-state":"off")") != std::string::npos);

  const auto forced = reset(Reset::force_off);
  REQUIRE_FALSE(forced);
  CHECK(forced.error().code == ErrorCode::unsupported);
  CHECK(patches.size() == 1);
}

TEST_CASE_FIXTURE(Cluster, "wol: a machine is on while its Lease changes, and off only when sure") {
  const auto set_node = [&](bool ready, bool ordered) {
    api::Node changed = node("sleeper", ready);
    if (ordered) {
      changed.meta.annotations.set("kwatt.dev/power-state", "off");
      changed.meta.annotations.set("kwatt.dev/power-off-boot", "boot-sleeper");
    }
    nodes.put(changed);
  };
  set_node(true, false);
  CHECK(state() == MachinePower::unknown);  // one look is no change
  clock.advance(seconds{10});
  renewed = "2026-11-20T12:00:10.000000Z";
  CHECK(state() == MachinePower::on);
  set_node(true, true);
  clock.advance(seconds{39});
  CHECK(state() == MachinePower::on);
  clock.advance(seconds{2});
  CHECK(state() == MachinePower::unknown);
  clock.advance(seconds{60});
  SUBCASE("silent for long, ordered off, but Ready in the API") {
    CHECK(state() == MachinePower::unknown);
  }
  SUBCASE("silent for long and not Ready, but nobody ordered it: a crash, perhaps") {
    set_node(false, false);
    CHECK(state() == MachinePower::unknown);
  }
  SUBCASE("all three") {
    set_node(false, true);
    CHECK(state() == MachinePower::off);
    // Switched on again by whomever.
    renewed = "2026-11-20T12:10:00.000000Z";
    CHECK(state() == MachinePower::on);
  }
}

TEST_CASE_FIXTURE(Cluster, "wol: a driver that has just been made does not call a machine off") {
  api::Node sleeper = node("sleeper", false);
  sleeper.meta.annotations.set("kwatt.dev/power-state", "off");
  sleeper.meta.annotations.set("kwatt.dev/power-off-boot", "boot-sleeper");
  nodes.put(sleeper);
  CHECK(state() == MachinePower::unknown);
  clock.advance(seconds{89});
  CHECK(state() == MachinePower::unknown);
  clock.advance(seconds{2});
  CHECK(state() == MachinePower::off);
}

}  // namespace
}  // namespace kwatt::reconcilers

TEST_SUITE_END();
