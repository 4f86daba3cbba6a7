#include <doctest/doctest.h>

#include "reconcilers/metal3.hpp"
#include "test/hardware/print_result.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

TEST_SUITE_BEGIN("metal3");

namespace kwatt::reconcilers {
namespace {

using hardware::MachinePower;
using hardware::Reset;

// As Metal3 writes one; `spec`, `status` and `annotations` are the members that a case is about.
std::string host(bool online, const std::string& status, const std::string& annotations = "{}") {
  return R"({"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"host-1",)"
         R"("namespace":"metal3","resourceVersion":"77","annotations":)" +
         annotations + R"(},"spec":{"bmc":{"address":"ipmi://10.0.0.7"},"online":)" +
         (online ? "true" : "false") + R"(},"status":)" + status + "}";
}
std::string provisioned(bool powered_on) {
  return std::string(R"({"poweredOn":)") + (powered_on ? "true" : "false") +
         R"(,"provisioning":{"state":"provisioned"},"operationalStatus":"OK","errorMessage":""})";
}

class HostClient final : public test::StubClient {
 public:
  std::string answer;
  std::string asked;
  std::vector<std::string> patches;
  std::optional<Error> patch_error;

  Task<Text> get(const kube::Resource& resource, kube::Name name) override {
    asked = kube::path_of(resource, name.namespace_name, name.name);
    co_return answer;
  }
  Task<Text> patch(const kube::Resource&, kube::Name, PatchType type, std::string, std::string sub,
                   std::string body) override {
    CHECK(type == PatchType::merge);
    CHECK(sub.empty());
    patches.push_back(body);
    if (patch_error) co_return *patch_error;
    co_return answer;
  }
};

struct Fixture {
  HostClient client;
  boost::asio::io_context io{1};
  std::unique_ptr<hardware::PowerDriver> driver =
      make_metal3_driver(client, kube::Name("metal3", "host-1"));
};

TEST_CASE("metal3: an address names namespace and host, and nothing else") {
  const auto name = parse_metal3_address("metal3://metal3/host-1");
  REQUIRE(name);
  CHECK(name->namespace_name == "metal3");
  CHECK(name->name == "host-1");
  for (const char* bad : {"metal3:", "metal3://", "metal3://host-1", "metal3:///host-1",
                          "metal3://metal3/", "metal3://metal3/a/b", "metal3://../secrets/x",
                          "metal3://metal3/a?b", "metal3://metal3/A"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_metal3_address(bad));
  }
}

TEST_CASE("metal3: the state is what Metal3 sees, on the way to what is wanted") {
  const struct {
    const char* name;
    std::string json;
    MachinePower want;
  } cases[] = {
      {"on", host(true, provisioned(true)), MachinePower::on},
      {"off", host(false, provisioned(false)), MachinePower::off},
      {"going off", host(false, provisioned(true)), MachinePower::powering_off},
      {"coming on", host(true, provisioned(false)), MachinePower::powering_on},
      {"never looked at", host(true, "{}"), MachinePower::unknown},
      {"detached: the last word may be old",
       host(true, provisioned(true), R"({"baremetalhost.metal3.io/detached":""})"),
       MachinePower::unknown},
      {"paused", host(true, provisioned(false), R"({"baremetalhost.metal3.io/paused":""})"),
       MachinePower::unknown},
      {"held off by somebody", host(true, provisioned(false), R"({"reboot.metal3.io/capi":""})"),
       MachinePower::off},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    const auto parsed = parse_bare_metal_host(c.json);
    REQUIRE(parsed);
    CHECK(power_of(*parsed) == c.want);
  }
  for (const char* wrong : {"", "[]", R"({"kind":"Status","code":200})"}) {
    CAPTURE(wrong);
    const auto parsed = parse_bare_metal_host(wrong);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::protocol);
  }
}

TEST_CASE_FIXTURE(Fixture, "metal3: spec.online is patched from the version that was read") {
  client.answer = host(true, provisioned(true));
  REQUIRE(test::run_task(io, driver->reset(Reset::graceful_shutdown, "op-1")));
  CHECK(client.asked == "/apis/metal3.io/v1alpha1/namespaces/metal3/baremetalhosts/host-1");
  REQUIRE(client.patches.size() == 1);
  CHECK(client.patches[0] == R"({"metadata":{"resourceVersion":"77"},"spec":{"online":false}})");

  client.answer = host(false, provisioned(false));
  REQUIRE(test::run_task(io, driver->reset(Reset::force_off, "op-1")));
  CHECK(client.patches.size() == 1);  // as wanted already
  REQUIRE(test::run_task(io, driver->reset(Reset::on, "op-1")));
  CHECK(client.patches.back() == R"({"metadata":{"resourceVersion":"77"},"spec":{"online":true}})");
}

TEST_CASE_FIXTURE(Fixture, "metal3: somebody who was faster is a conflict") {
  client.answer = host(true, provisioned(true));
  client.patch_error = fail(ErrorCode::conflict, "HTTP 409", "the object has been modified");
  const auto done = test::run_task(io, driver->reset(Reset::force_off, "op-1"));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::conflict);
  CHECK(done.error().message.starts_with("BareMetalHost metal3/host-1: "));
}

TEST_CASE_FIXTURE(Fixture, "metal3: hosts that are somebody else's business are refused") {
  const auto in_state = [](const std::string& state, const std::string& operational = "OK") {
    return R"({"poweredOn":true,"provisioning":{"state":")" + state +
           R"("},"operationalStatus":")" + operational +
           R"(","errorMessage":"no answer of the BMC"})";
  };
  const struct {
    const char* name;
    std::string json;
    const char* off;  // why it may not be switched off; nullptr: it may
    const char* on;
  } cases[] = {
      {"plain", host(true, in_state("provisioned")), nullptr, nullptr},
      {"externally provisioned", host(true, in_state("externally provisioned")), nullptr, nullptr},
      {"detached",
       host(true, in_state("provisioned"), R"({"baremetalhost.metal3.io/detached":""})"),
       "it is detached", "it is detached"},
      {"detached by its status", host(true, in_state("provisioned", "detached")), "it is detached",
       "it is detached"},
      {"paused", host(true, in_state("provisioned"), R"({"baremetalhost.metal3.io/paused":"x"})"),
       "it is paused", "it is paused"},
      {"being provisioned", host(true, in_state("provisioning")), "it is provisioning",
       "it is provisioning"},
      {"free", host(true, in_state("available")), "it is available, not provisioned",
       "it is available, not provisioned"},
      {"unknown to Metal3", host(true, "{}"), "it is not registered", "it is not registered"},
      {"serviced", host(true, in_state("provisioned", "servicing")), "it is being serviced",
       "it is being serviced"},
      {"in error: it may be woken, but not switched off",
       host(true, in_state("provisioned", "error")), "no answer of the BMC", nullptr},
      {"held off by a fencing agent: it cannot be woken",
       host(true, in_state("provisioned"), R"({"reboot.metal3.io/fence":""})"), nullptr,
       "reboot.metal3.io/fence"},
      {"asked for one reboot", host(true, in_state("provisioned"), R"({"reboot.metal3.io":""})"),
       nullptr, nullptr},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    const auto parsed = parse_bare_metal_host(c.json);
    REQUIRE(parsed);
    for (const bool online : {false, true}) {
      CAPTURE(online);
      const char* want = online ? c.on : c.off;
      const auto why = refusal(*parsed, online);
      REQUIRE(why.has_value() == (want != nullptr));
      if (why) CHECK(why->find(want) != std::string::npos);
    }
    client.answer = c.json;
    client.patches.clear();
    const bool left_alone = c.off != nullptr && c.on != nullptr;
    CHECK(test::run_task(io, driver->state()).has_value() != left_alone);
    const auto off = test::run_task(io, driver->reset(Reset::force_off, ""));
    CHECK(off.has_value() == (c.off == nullptr));
    CHECK(client.patches.empty() == (c.off != nullptr));
  }
}

TEST_CASE_FIXTURE(Fixture, "metal3: there are no readings and no limits") {
  CHECK_FALSE(test::run_task(io, driver->power_reading())->has_value());
  const auto limited = test::run_task(io, driver->set_power_limit(watts(100), "op-1"));
  REQUIRE_FALSE(limited);
  CHECK(limited.error().code == ErrorCode::unsupported);
}

}  // namespace
}  // namespace kwatt::reconcilers

TEST_SUITE_END();
