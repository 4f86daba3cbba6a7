#pragma once
// Machines that Metal3 manages (address metal3://NAMESPACE/NAME): kwatt asks the BareMetalHost, and
// Metal3 talks to the machine.
#include <memory>
#include <string>
#include <string_view>

#include "hardware/driver.hpp"
#include "kube/client.hpp"

namespace kwatt::reconcilers {

// Errors: invalid_argument (not metal3://NAMESPACE/NAME).
Result<kube::Name> parse_metal3_address(std::string_view address);

// The parts of a BareMetalHost (metal3.io/v1alpha1) that power is about.
struct BareMetalHost {
  std::string resource_version;
  bool online = false;        // spec.online: what is wanted
  bool powered_on = false;    // status.poweredOn: what Metal3 has seen
  bool power_known = false;   // status.poweredOn is there
  std::string provisioning;   // status.provisioning.state
  std::string operational;    // status.operationalStatus
  std::string error_message;  // status.errorMessage
  bool paused = false, detached = false, deleting = false;
  std::string held_off_by;  // an annotation reboot.metal3.io/…: its owner keeps the machine off
};
// Errors: protocol.
Result<BareMetalHost> parse_bare_metal_host(std::string_view json);
hardware::MachinePower power_of(const BareMetalHost& host);
// Why the host is not ours to switch, in whatever direction; nullopt: it is.
std::optional<std::string> off_limits(const BareMetalHost& host);
// Why kwatt must not write spec.online = `online`, off_limits() included; nullopt: it may.
std::optional<std::string> refusal(const BareMetalHost& host, bool online);

// state(): also fails, with the sentence of off_limits(), so that such a machine is left alone
// before it is touched. reset(): spec.online by merge patch, guarded by the resourceVersion that
// was read; a shutdown is graceful or not as Metal3 decides, so both kinds are the same. Metal3's
// annotations for reboots are not used. No readings and no limits. Errors: not_found, forbidden
// (RBAC: manifests/optional/metal3-rbac.yaml), conflict (somebody was faster, or refusal()), and
// those of the API server.
std::unique_ptr<hardware::PowerDriver> make_metal3_driver(kube::Client& client, kube::Name host);

}  // namespace kwatt::reconcilers
