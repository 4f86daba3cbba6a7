#pragma once
// IPMI 2.0 over the network, through ipmitool: chassis power, DCMI power readings and limits, and
// where a controller has no DCMI, its power sensors.
#include <memory>

#include "hardware/driver.hpp"

namespace kwatt::hardware {

// ipmi://HOST[:PORT], port 623 if none is given. One child process per request: `ipmitool -I
// lanplus -C 3`, the password in its environment, the address already resolved and checked against
// config.address_allowed. Errors: invalid_argument (not such an address).
Result<std::unique_ptr<PowerDriver>> make_ipmi_driver(DriverConfig config);

}  // namespace kwatt::hardware
