#pragma once
// Machines without a management controller (address wol:MAC): woken by a magic packet that the
// agent of an awake node sends, switched off by their own agent.
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "hardware/driver.hpp"
#include "hardware/wake_lan.hpp"
#include "kube/client.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::reconcilers {

struct WakeOnLanTiming {
  Duration fresh = std::chrono::seconds{40};    // a Lease seen to change so lately: it runs
  Duration silent = std::chrono::seconds{90};   // one watched so long without a change
  Duration attempt = std::chrono::seconds{30};  // between two packets of one wake
};

// state(): nobody can ask such a machine. `on`: its kubelet's Lease was seen to change lately.
// `off`: we asked its agent to switch it off, the node is not Ready, and the Lease has been watched
// without a change for long. Anything else is `unknown`.
// reset(on): puts a note on a relay (relay.hpp); asked again, the same wake goes through another
// relay. graceful_shutdown: annotations for the node's own agent. force_off: unsupported, as are
// readings and limits.
// Errors: unavailable (no relay; no agent), unsupported, and those of the API server.
// What is passed in outlives the driver.
std::unique_ptr<hardware::PowerDriver> make_wake_on_lan_driver(kube::Client& client,
                                                               const Stores& stores,
                                                               const Clock& clock, std::string node,
                                                               hardware::MacAddress mac,
                                                               WakeOnLanTiming timing = {});

}  // namespace kwatt::reconcilers
