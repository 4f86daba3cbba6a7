#include "reconcilers/metal3.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "api/patch.hpp"
#include "hardware/excerpt.hpp"
#include "hardware/json.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::reconcilers {
namespace {

using hardware::MachinePower;
using hardware::text_at;

constexpr std::string_view kScheme = "metal3://";
constexpr std::string_view kPaused = "baremetalhost.metal3.io/paused";
constexpr std::string_view kDetached = "baremetalhost.metal3.io/detached";
constexpr std::string_view kReboot = "reboot.metal3.io";
constexpr const char* kExample = "metal3://metal3/host-1";

const kube::Resource& bare_metal_hosts() {
  static const kube::Resource resource{"metal3.io", "v1alpha1", "baremetalhosts", true};
  return resource;
}

bool is_true(const rapidjson::Value& root, std::initializer_list<std::string_view> path) {
  const auto* value = hardware::find(root, path);
  return value != nullptr && value->IsTrue();
}

// Names of namespaces and of objects: never a path to somewhere else.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '.' && text.back() != '.' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

class Metal3Driver final : public hardware::PowerDriver {
 public:
  Metal3Driver(kube::Client& client, kube::Name host) : client_(client), host_(std::move(host)) {}

  kube::Task<Result<MachinePower>> state() override {
    auto host = co_await read();
    if (!host) co_return host.error();
    if (auto why = off_limits(*host)) {
      co_return fail(ErrorCode::conflict, fmt::format("{}: {}", what(), *why));
    }
    co_return power_of(*host);
  }

  kube::Task<Result<void>> reset(hardware::Reset reset, std::string) override {
    const bool online = reset == hardware::Reset::on;
    auto host = co_await read();
    if (!host) co_return host.error();
    if (auto why = refusal(*host, online)) {
      co_return fail(ErrorCode::conflict, fmt::format("{}: {}", what(), *why));
    }
    if (host->online == online) co_return Result<void>{};
    api::MergePatch patch;
    patch.set({"metadata", "resourceVersion"}, host->resource_version)
        .set({"spec", "online"}, online);
    auto answer = co_await client_.patch(bare_metal_hosts(), host_, kube::Client::PatchType::merge,
                                         kFieldManager, "", patch.text());
    if (!answer) co_return answer.error().with_context(what());
    co_return Result<void>{};
  }

  kube::Task<Result<std::optional<Milliwatts>>> power_reading() override {
    co_return std::optional<Milliwatts>{};
  }

  kube::Task<Result<void>> set_power_limit(std::optional<Milliwatts>, std::string) override {
    co_return fail(ErrorCode::unsupported, "Metal3 offers no power limit");
  }

 private:
  std::string what() const {
    return fmt::format("BareMetalHost {}/{}", host_.namespace_name, host_.name);
  }
  kube::Task<Result<BareMetalHost>> read() {
    auto body = co_await client_.get(bare_metal_hosts(), host_);
    if (!body) co_return body.error().with_context(what());
    auto host = parse_bare_metal_host(*body);
    if (!host) co_return host.error().with_context(what());
    co_return host;
  }

  kube::Client& client_;
  kube::Name host_;
};

}  // namespace

Result<kube::Name> parse_metal3_address(std::string_view address) {
  std::string_view rest = address;
  const bool complete = rest.starts_with(kScheme);
  if (complete) rest.remove_prefix(kScheme.size());
  const auto slash = rest.find('/');
  const auto space = rest.substr(0, slash);
  const auto name = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  if (!complete || !is_name(space) || !is_name(name)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("bmc address {} is not metal3://NAMESPACE/NAME, such as {}", address,
                            kExample));
  }
  return kube::Name(std::string(space), std::string(name));
}

Result<BareMetalHost> parse_bare_metal_host(std::string_view json) {
  const auto document = hardware::parse_json(json);
  if (!document || text_at(*document, {"kind"}) != "BareMetalHost") {
    return fail(ErrorCode::protocol, "the answer is not a BareMetalHost", hardware::excerpt(json));
  }
  BareMetalHost host;
  host.resource_version = text_at(*document, {"metadata", "resourceVersion"});
  host.online = is_true(*document, {"spec", "online"});
  const auto* powered = hardware::find(*document, {"status", "poweredOn"});
  host.power_known = powered != nullptr && powered->IsBool();
  host.powered_on = host.power_known && powered->GetBool();
  host.provisioning = text_at(*document, {"status", "provisioning", "state"});
  host.operational = text_at(*document, {"status", "operationalStatus"});
  host.error_message = text_at(*document, {"status", "errorMessage"});
  host.deleting = hardware::find(*document, {"metadata", "deletionTimestamp"}) != nullptr;
  const auto* annotations = hardware::find(*document, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->IsObject()) return host;
  for (const auto& member : annotations->GetObject()) {
    const std::string_view key(member.name.GetString(), member.name.GetStringLength());
    if (key == kPaused) host.paused = true;
    if (key == kDetached) host.detached = true;
    // The bare annotation asks for one reboot; one with a suffix holds the machine off.
    if (key.starts_with(kReboot) && key.size() > kReboot.size() && key[kReboot.size()] == '/') {
      host.held_off_by = key;
    }
  }
  return host;
}

MachinePower power_of(const BareMetalHost& host) {
  // Nobody looks at a machine that Metal3 has let go of: its last word may be old.
  if (!host.power_known || host.paused || host.detached || host.operational == "detached") {
    return MachinePower::unknown;
  }
  if (host.powered_on) return host.online ? MachinePower::on : MachinePower::powering_off;
  return host.online && host.held_off_by.empty() ? MachinePower::powering_on : MachinePower::off;
}

std::optional<std::string> off_limits(const BareMetalHost& host) {
  if (host.deleting) return "it is being deleted";
  if (host.paused) return fmt::format("it is paused (annotation {})", kPaused);
  if (host.detached || host.operational == "detached") {
    return fmt::format("it is detached (annotation {}): Metal3 does not switch it", kDetached);
  }
  if (host.provisioning != "provisioned" && host.provisioning != "externally provisioned") {
    return fmt::format("it is {}, not provisioned: Metal3 itself needs its power now",
                       host.provisioning.empty() ? "not registered" : host.provisioning);
  }
  if (host.operational == "servicing") return "it is being serviced";
  return std::nullopt;
}

std::optional<std::string> refusal(const BareMetalHost& host, bool online) {
  if (auto why = off_limits(host)) return why;
  if (!host.held_off_by.empty() && online) {
    return fmt::format("it is held off by somebody else (annotation {})", host.held_off_by);
  }
  // Switching off what Metal3 cannot switch on again would be a trap.
  if (host.operational == "error" && !online) {
    return fmt::format("Metal3 reports an error: {}", hardware::excerpt(host.error_message));
  }
  return std::nullopt;
}

std::unique_ptr<hardware::PowerDriver> make_metal3_driver(kube::Client& client, kube::Name host) {
  return std::make_unique<Metal3Driver>(client, std::move(host));
}

}  // namespace kwatt::reconcilers
